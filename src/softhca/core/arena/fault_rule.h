// The rules of --fault. They are in shared memory and count over all processes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "prm/names.h"

namespace ucxl::softhca
{

enum class fault_kind : std::uint8_t {
    none,
    command,     // by opcode: answered with `status` instead of being executed
    wqe,         // by opcode: completed with syndrome `status`, the queue pair in error
    delay,       // a WQE by opcode: executed `amount` ns later
    drop,        // a message by opcode: lost on the wire `times` times, so that it is retried
    key_limit,   // at most `amount` live keys
    memic_limit, // at most `amount` bytes of device memory
    refuse,      // a `refusable` as opcode: refused, as by a firmware that lacks it
    fatal,       // the firmware of the device of a WQE, by opcode, fails when the WQE is executed
    remove,      // the same, and the device leaves the bus
    reset,       // the function of a WQE, by opcode, is reset when the WQE is executed
    port_down,   // the port of a WQE, by opcode, goes down when the WQE is executed
};

// Whether it changes a device, and `amount` is the time until the device recovers or the port is up, 0 for never. A
// function that is reset works on at once.
constexpr bool is_device_change(fault_kind kind)
{
    return kind == fault_kind::fatal || kind == fault_kind::remove || kind == fault_kind::reset ||
           kind == fault_kind::port_down;
}

// Features that a firmware may refuse although no capability says so.
enum class refusable : std::uint8_t {
    umr_start_addr,      // a UMR that moves the start of a key
    umr_repeat_block,    // a UMR with a repeat block
    indirect_atomic,     // an atomic through an indirect key
    umr_pointer,         // a UMR with its entries in memory
    local_nested,        // a peer's use of a key whose keys below have local rights only
    umr_atomic_right,    // a UMR that names the atomic right
    deep_local_nested,   // as local_nested, where the keys are two levels or more below the first one
    nested_atomic,       // an atomic through a key over keys
    nested_repeat_block, // use of a repeat block below another key
};

inline constexpr std::uint32_t any_opcode = 0xffffffff;

struct fault_rule {
    fault_kind kind      = fault_kind::none;
    std::uint8_t status  = 0;
    std::uint32_t opcode = any_opcode;
    std::uint64_t first  = 0; // the number of the first occurrence that is hit, from 1
    std::uint64_t times  = 1; // how many are hit from there on
    std::uint64_t amount = 0;
    std::uint64_t seen   = 0; // occurrences so far

    // A change of a device that comes at a time instead of a WQE.
    std::uint64_t after_ns = 0; // from the start of the fabric, 0 for none
    std::uint16_t function = 0;
};

inline constexpr std::size_t max_fault_rules = 16;

struct fault_plan {
    std::array<fault_rule, max_fault_rules> rules;
};

} // namespace ucxl::softhca

template <>
struct ucxl::prm::value_names<ucxl::softhca::refusable>
    : one_of<softhca::refusable::umr_start_addr, softhca::refusable::umr_repeat_block,
             softhca::refusable::indirect_atomic, softhca::refusable::umr_pointer, softhca::refusable::local_nested,
             softhca::refusable::umr_atomic_right, softhca::refusable::deep_local_nested,
             softhca::refusable::nested_atomic, softhca::refusable::nested_repeat_block> {
};

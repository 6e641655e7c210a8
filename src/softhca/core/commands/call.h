// One command during its execution, and what all handlers of commands use.
//
// A handler gets mailboxes that are long enough. It changes records so that a process may die at any instruction
// (record_table.h). It either succeeds or changes nothing. Each family of handlers has a table of entries, which
// dispatch.cc searches.
//
//     prm::command_status dealloc_pd(command_call& call, prm::const_view<prm::dealloc_pd_in> input, prm::view<...>)
//     {
//         pd_record* const pd = own(call, call.memory().pds, input.get(prm::dealloc_pd_in::pd));
//         if (pd == nullptr)
//             return call.refuse(prm::command_status::bad_resource, "no such protection domain");
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prm/command.h"
#include "softhca/core/arena/arena.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/arena/record_table.h"
#include "softhca/core/clients/client.h"

namespace ucxl::softhca
{

struct command_call {
    environment& device;
    std::vector<std::uint32_t>& queue_pairs; // of this process; the handlers of queue pairs maintain it
    function_id function;
    std::uint16_t uid;
    std::span<const std::byte> input;
    std::span<std::byte> output;
    const char* reason    = nullptr; // why the command was refused, for the trace
    std::uint64_t cost_ns = 0;       // modelled time of the command (--times)

    arena& memory() const { return device.memory; }
    const function_record& caller() const { return device.memory.function_table[function]; }
    ownership owner() const { return {life::free, caller().incarnation, device.self, function, uid}; }

    prm::command_status refuse(prm::command_status status, const char* why)
    {
        reason = why;
        return status;
    }
};

// A process may use its own objects: a DEVX context (uid) those it made itself, the kernel (uid 0) all of them.
inline bool belongs(const command_call& call, const ownership& owner)
{
    return owner.client == call.device.self && owner.function == call.function &&
           (call.uid == 0 || call.uid == owner.uid);
}

template <typename Record, std::size_t Count>
Record* own(const command_call& call, table<Record, Count>& records, std::uint64_t id)
{
    Record* const found = records.find(id);
    return found != nullptr && belongs(call, found->owner) ? found : nullptr;
}

// A queue pair, which a target of dynamic connections is not.
inline qp_record* own_queue_pair(const command_call& call, std::uint64_t id)
{
    qp_record* const found = own(call, call.memory().qps, id);
    return found != nullptr && !found->dc.target ? found : nullptr;
}

// A free id. When there is none, releases dead processes and tries again; 0 if there still is none.
template <typename Record, std::size_t Count>
std::uint32_t find_room(command_call& call, table<Record, Count>& records)
{
    const std::uint32_t id = find_free(records);
    return id == 0 && release_dead_clients(call.device) != 0 ? find_free(records) : id;
}

// A free id for a key whose number has room in an index, or 0.
inline std::uint32_t find_room_for_key(command_call& call)
{
    const table<mkey_record, max_mkeys>& keys = call.memory().mkeys;
    const std::uint32_t id                    = find_room(call, call.memory().mkeys);
    return keys.number_of(id) >> key_index_bits == 0 ? id : 0;
}

// The memory of a UMEM from `offset` on.
std::optional<process_memory> umem_range(const command_call& call, std::uint32_t umem, std::uint64_t offset,
                                         std::uint64_t length);

// Whether the UMEM was registered with IB_ACCESS_LOCAL_WRITE.
inline bool is_writable(const command_call& call, std::uint32_t umem)
{
    const umem_record* const found = call.memory().umems.find(umem);
    return found != nullptr && (found->access & 1) != 0;
}

// The kernel makes doorbell pages for all contexts of a process.
inline bool owns_uar(const command_call& call, std::uint32_t uar)
{
    const uar_record* const found = call.memory().uars.find(uar);
    return found != nullptr && found->owner.client == call.device.self && found->owner.function == call.function;
}

// Counts a reference to an object by its number; 0 for none.
template <typename Record, std::size_t Count>
void hold(table<Record, Count>& records, std::uint32_t id)
{
    if (Record* const used = records.find(id)) {
        ++used->users;
    }
}

template <typename Record, std::size_t Count>
void let_go(table<Record, Count>& records, std::uint32_t id)
{
    if (Record* const used = records.find(id); used != nullptr && used->users != 0) {
        --used->users;
    }
}

// Makes a key live once it is filled in, and destroys a key with all that it holds.
void publish_key(arena& memory, std::uint32_t index, const ownership& owner);
void retire_key(arena& memory, const mkey_record& retired);

// Implements fabric::replace_region().
prm::command_status replace_region(command_call& call, std::uint32_t key);

struct command_entry {
    prm::command opcode;
    std::size_t input_bytes;
    std::size_t output_bytes; // the minimum that is accepted
    prm::command_status (*execute)(command_call& call);
};

namespace detail
{

template <typename In, typename Out, auto Handler>
prm::command_status execute(command_call& call)
{
    return Handler(call, *prm::const_view<In>::over(call.input), *prm::view<Out>::over(call.output));
}

} // namespace detail

// The longest answer of any command. call.output is that long, whatever room the caller gave.
inline constexpr std::size_t longest_answer = 4112;

// `least_output`: the minimum length when callers are known to declare the output too short.
template <typename In, typename Out, auto Handler>
constexpr command_entry entry(prm::command opcode, std::size_t least_output = Out::size_bytes)
{
    static_assert(Out::size_bytes <= longest_answer);
    return {opcode, std::max<std::size_t>(In::size_bytes, 16), least_output, &detail::execute<In, Out, Handler>};
}

// Executes a command whose input is at least prm::any_input, and counts it. Under the lock. `output_bytes` is what the
// caller has room for.
prm::command_status execute_command(command_call& call, std::size_t output_bytes, prm::command opcode);

using command_entries = std::span<const command_entry>;

command_entries capability_commands();
command_entries cq_commands();
command_entries dct_commands();
command_entries mkey_commands();
command_entries port_commands();
command_entries qp_commands();
command_entries qp_transition_commands();
command_entries resource_commands();
command_entries srq_commands();
command_entries vhca_commands();
// All of these.
std::array<command_entries, 10> command_families();

} // namespace ucxl::softhca

// One command while it is executed, and what all handlers of commands need.
//
// A handler sees mailboxes that are long enough, changes records so that a process may die at any instruction
// (record_table.h), and either succeeds or has changed nothing. Handlers are grouped by family: a table of entries
// each, found by command.cc.
//
//     prm::command_status dealloc_pd(command_call& call, prm::const_view<prm::dealloc_pd_in> in, prm::view<...>)
//     {
//         pd_record* const pd = own(call, call.memory().pds, in.get(prm::dealloc_pd_in::pd));
//         if (pd == nullptr)
//             return call.refuse(prm::command_status::bad_resource, "no such protection domain");
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arena.h"
#include "client.h"
#include "prm/command.h"
#include "record_table.h"

namespace ucxl::softhca
{

struct command_call {
    environment& device;
    std::vector<std::uint32_t>& queue_pairs; // of this process, kept up by the handlers of queue pairs
    function_id function;
    std::uint16_t uid;
    std::span<const std::byte> in;
    std::span<std::byte> out;
    const char* reason    = nullptr; // why it was refused, for the trace
    std::uint64_t cost_ns = 0;       // what the profile adds

    arena& memory() const { return device.memory; }
    const function_record& caller() const { return device.memory.function_table[function]; }
    ownership owner() const { return {life::free, 0, device.self, function, uid}; }

    prm::command_status refuse(prm::command_status status, const char* why)
    {
        reason = why;
        return status;
    }
};

// A process sees its own objects; a DEVX context (uid) only those it made itself, the kernel (uid 0) all of them.
inline bool belongs(const command_call& call, const ownership& owner)
{
    return owner.client == call.device.self && owner.function == call.function &&
           (call.uid == 0 || call.uid == owner.uid);
}

template <typename Record, std::size_t Count>
Record* own(const command_call& call, table<Record, Count>& of, std::uint64_t id)
{
    Record* const found = of.find(id);
    return found != nullptr && belongs(call, found->owner) ? found : nullptr;
}

// A free id, after looking for processes that ended where there is none; 0 if there still is none.
template <typename Record, std::size_t Count>
std::uint32_t find_room(command_call& call, table<Record, Count>& of)
{
    const std::uint32_t id = find_free(of);
    return id == 0 && release_dead_clients(call.device) != 0 ? find_free(of) : id;
}

// The memory of a umem from `offset` on.
std::optional<process_memory> umem_range(const command_call& call, std::uint32_t umem, std::uint64_t offset,
                                         std::uint64_t length);

// Whether it was given with IB_ACCESS_LOCAL_WRITE.
inline bool is_writable(const command_call& call, std::uint32_t umem)
{
    const umem_record* const found = call.memory().umems.find(umem);
    return found != nullptr && (found->access & 1) != 0;
}

// Doorbell pages are made by the kernel for all contexts of a process.
inline bool owns_uar(const command_call& call, std::uint32_t uar)
{
    const uar_record* const found = call.memory().uars.find(uar);
    return found != nullptr && found->owner.client == call.device.self && found->owner.function == call.function;
}

// Counts references to objects given by number, 0 for none.
template <typename Record, std::size_t Count>
void hold(table<Record, Count>& of, std::uint32_t id)
{
    if (Record* const used = of.find(id)) {
        ++used->users;
    }
}

template <typename Record, std::size_t Count>
void let_go(table<Record, Count>& of, std::uint32_t id)
{
    if (Record* const used = of.find(id); used != nullptr && used->users != 0) {
        --used->users;
    }
}

// A key that is filled in becomes live, and one that is ends with all it holds.
void publish_key(arena& memory, std::uint32_t index, const ownership& owner);
void retire_key(arena& memory, std::uint32_t index);

// The body of fabric::replace_region().
prm::command_status replace_region(command_call& call, std::uint32_t key);

struct command_entry {
    prm::command opcode;
    std::size_t in_bytes;
    std::size_t out_bytes; // the least that is accepted
    prm::command_status (*execute)(command_call& call);
};

namespace detail
{

template <typename In, typename Out, auto Handler>
prm::command_status execute(command_call& call)
{
    return Handler(call, *prm::const_view<In>::over(call.in), *prm::view<Out>::over(call.out));
}

} // namespace detail

// The longest answer a command has; call.out is that long whatever the caller gave.
inline constexpr std::size_t longest_answer = 4112;

// `least_out` is for answers that callers are known to cut short.
template <typename In, typename Out, auto Handler>
constexpr command_entry entry(prm::command opcode, std::size_t least_out = Out::size_bytes)
{
    static_assert(Out::size_bytes <= longest_answer);
    return {opcode, std::max<std::size_t>(In::size_bytes, 16), least_out, &detail::execute<In, Out, Handler>};
}

using command_entries = std::span<const command_entry>;

command_entries capability_commands();
command_entries cq_commands();
command_entries mkey_commands();
command_entries port_commands();
command_entries qp_commands();
command_entries qp_transition_commands();
command_entries resource_commands();
command_entries srq_commands();
command_entries vhca_commands();

} // namespace ucxl::softhca

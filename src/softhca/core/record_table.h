// Taking records out of the tables of the arena and giving them back, so that a process may die at any instruction: a
// record is filled in while it still counts as free, and becomes live by its last write.
//
//     if (const auto id = find_free(memory.pds)) {
//         pd_record& made = fresh(memory.pds, id);
//         made.users = 0;
//         publish(memory.pds, id, owner);
//     }
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>

#include "arena.h"

namespace ucxl::softhca
{

namespace detail
{

// Stays before or behind the writes around it: the process may end between any two of them.
inline void set_life(ownership& owner, life value)
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::atomic_ref(owner.life).store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

} // namespace detail

// Ids below this one are not given out.
template <typename Record>
inline constexpr std::uint32_t first_id = 1;

// Some numbers in the place of a key mean something else: 0x100 is the invalid lkey, 0x400 makes a repeat block.
template <>
inline constexpr std::uint32_t first_id<mkey_record> = 16;

// Queue pairs 0 and 1 of a port are those of its management.
template <>
inline constexpr std::uint32_t first_id<qp_record> = 16;

// A free id, or 0. Ids come back late, so that a peer's stale number rarely names something new, and the part of a
// table that is ever touched stays in proportion to what is alive.
template <typename Record, std::size_t Count>
std::uint32_t find_free(table<Record, Count>& of)
{
    const std::uint32_t wanted = std::max<std::uint32_t>(256, std::bit_ceil((of.live + 1) * 2));
    const auto limit           = static_cast<std::uint32_t>(std::min<std::size_t>(Count, wanted));
    for (std::uint32_t tried = 0, id = of.cursor; tried < limit; ++tried) {
        id = id + 1 >= limit ? first_id<Record> : std::max(id + 1, first_id<Record>);
        if (of.records[id].owner.life == life::free) {
            of.cursor = id;
            return id;
        }
    }
    return 0;
}

// The record of a free id, as if it had never been used.
template <typename Record, std::size_t Count>
Record& fresh(table<Record, Count>& of, std::uint32_t id)
{
    of.end                = std::max(of.end, id + 1);
    return of.records[id] = Record{};
}

template <typename Record, std::size_t Count>
void publish(table<Record, Count>& of, std::uint32_t id, ownership owner)
{
    owner.life           = life::free;
    of.records[id].owner = owner;
    detail::set_life(of.records[id].owner, life::live);
    ++of.live;
}

template <typename Record, std::size_t Count>
void retire(table<Record, Count>& of, std::uint32_t id)
{
    detail::set_life(of.records[id].owner, life::free);
    --of.live;
}

// Calls action(id, record) for every live record.
template <typename Record, std::size_t Count, typename Action>
void for_each_live(table<Record, Count>& of, Action&& action)
{
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(of.end, Count));
    for (std::uint32_t id = 1; id < end; ++id) {
        if (of.records[id].owner.life == life::live) {
            action(id, of.records[id]);
        }
    }
}

} // namespace ucxl::softhca

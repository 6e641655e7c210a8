// Allocating and freeing records of the arena's tables so that a process may die at any instruction: a record is filled
// in while it counts as free, and becomes live by its last write.
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

// A fence: the compiler keeps the order of the writes around it, because the process may die between any two of them.
inline void set_life(ownership& owner, life value)
{
    std::atomic_signal_fence(std::memory_order_seq_cst);
    std::atomic_ref(owner.life).store(value, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

} // namespace detail

// Smaller ids are never used.
template <typename Record>
inline constexpr std::uint32_t first_id = 1;

// Some key values are reserved: 0x100 is the invalid lkey, 0x400 starts a repeat block.
template <>
inline constexpr std::uint32_t first_id<mkey_record> = 16;

// Queue pairs 0 and 1 of a port are its management queue pairs.
template <>
inline constexpr std::uint32_t first_id<qp_record> = 16;

// A free id, or 0. Freed ids are reused late, so that a stale number of a peer rarely names a new object, and only a
// part of the table proportional to its live records is ever touched.
template <typename Record, std::size_t Count>
std::uint32_t find_free(table<Record, Count>& records)
{
    const std::uint32_t wanted = std::max<std::uint32_t>(256, std::bit_ceil((records.live + 1) * 2));
    const auto limit           = static_cast<std::uint32_t>(std::min<std::size_t>(Count, wanted));
    for (std::uint32_t tried = 0, id = records.cursor; tried < limit; ++tried) {
        id = id + 1 >= limit ? first_id<Record> : std::max(id + 1, first_id<Record>);
        if (records.records[id].owner.life == life::free) {
            records.cursor = id;
            return id;
        }
    }
    return 0;
}

// Resets the record of a free id to its initial state.
template <typename Record, std::size_t Count>
Record& fresh(table<Record, Count>& records, std::uint32_t id)
{
    records.end                = std::max(records.end, id + 1);
    return records.records[id] = Record{};
}

template <typename Record, std::size_t Count>
void publish(table<Record, Count>& records, std::uint32_t id, ownership owner)
{
    owner.life                = life::free;
    records.records[id].owner = owner;
    detail::set_life(records.records[id].owner, life::live);
    ++records.live;
}

template <typename Record, std::size_t Count>
void retire(table<Record, Count>& records, std::uint32_t id)
{
    detail::set_life(records.records[id].owner, life::free);
    --records.live;
}

// Calls action(id, record) for every live record.
template <typename Record, std::size_t Count, typename Action>
void for_each_live(table<Record, Count>& records, Action&& action)
{
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(records.end, Count));
    for (std::uint32_t id = 1; id < end; ++id) {
        if (records.records[id].owner.life == life::live) {
            action(id, records.records[id]);
        }
    }
}

} // namespace ucxl::softhca

// The memory that all processes of one fabric share: the records of all devices, in tables of fixed size. It is mapped
// sparse, so a table costs only what is used of it. All-zero memory with a formatted head is an empty fabric.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "card.h"
#include "device_change.h"
#include "fault_rule.h"
#include "objects.h"
#include "port_counters.h"
#include "statistics.h"

namespace ucxl::softhca
{

inline constexpr std::uint64_t arena_magic   = 0x61636874666f7331; // "1softhca"
inline constexpr std::uint32_t arena_version = 4;

inline constexpr std::size_t max_clients       = 256;
inline constexpr std::size_t max_functions     = 32;
inline constexpr std::size_t max_channels      = 1U << 13;
inline constexpr std::size_t max_flow_counters = 1U << 12;
inline constexpr std::size_t max_pds           = 1U << 14;
inline constexpr std::size_t max_uars          = 1U << 12;
inline constexpr std::size_t max_umems         = 1U << 17;
inline constexpr std::size_t max_mkeys         = 1U << 17;
inline constexpr std::size_t max_cqs           = 1U << 14;
inline constexpr std::size_t max_srqs          = 1U << 12;
inline constexpr std::size_t max_qps           = 1U << 15;

// An entry has 16 bytes: a KLM, a KSM or part of a repeat block.
inline constexpr std::size_t max_translation_entries = 1U << 24;

inline constexpr std::size_t max_devices         = 8;
inline constexpr std::size_t memic_bytes         = 1U << 18; // of one device
inline constexpr std::size_t memic_page_bytes    = 4096;
inline constexpr std::size_t memic_pages         = memic_bytes / memic_page_bytes;
inline constexpr std::size_t memic_granule_bytes = 64; // allocations start at multiples of it

using translation_entry = std::array<std::byte, 16>;

// A table whose ids are its indices. Index 0 is never used, so 0 can mean none. Programs know a record by its number.
template <typename Record, std::size_t Count>
struct table {
    std::uint32_t cursor = 0; // the search for a free record starts here
    std::uint32_t live   = 0;
    std::uint32_t end    = 0; // records from here on were never used
    std::uint32_t base   = 0; // the number of id 0
    std::array<Record, Count> records;

    std::uint32_t number_of(std::uint32_t id) const { return base + id; }

    // Null when there is no such record, for any number.
    Record* find(std::uint64_t number)
    {
        const std::uint64_t id = number - base;
        if (id == 0 || id >= Count || records[id].owner.life != life::live) {
            return nullptr;
        }
        return &records[id];
    }
};

// Translation entries are allocated in runs. The live keys say which runs are taken, so a repair can rebuild this. See
// translation_pool.h and translation_list.h.
struct translation_table {
    std::array<std::uint32_t, 26> free_heads; // by log2 of the run, 0 for none; a free run names the next one
    std::uint32_t fresh;                      // the first entry never used yet
    std::uint32_t unused;
    alignas(64) std::array<translation_entry, max_translation_entries> entries;
    std::array<std::uint64_t, max_translation_entries> ends; // bytes of a list up to the end of each entry
    std::array<std::uint32_t, max_mkeys> order;              // scratch of the rebuild
};

// Scratch of the lock's holder: the pieces of one host::move. Too large for the stack of a signal handler.
struct move_batch {
    static constexpr std::size_t capacity = 1024;

    std::array<piece, capacity> to;
    std::array<piece, capacity> from;
};

// The entries of one UMR, read before anything changes. Scratch of the lock's holder. A UMR counts them with 16 bits.
using translation_scratch = std::array<translation_entry, 1U << 16>;

// Allocated in pages, because processes map pages.
struct memic_device {
    std::array<std::uint8_t, memic_pages> taken;   // nonzero: allocated
    std::array<std::uint32_t, memic_pages> length; // at the first page of an allocation, in pages
    std::array<ownership, memic_pages> owner;      // at the first page of an allocation
    std::uint32_t used_bytes;
    alignas(memic_page_bytes) std::array<std::byte, memic_bytes> bytes;
};

struct arena {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t functions;
    std::uint64_t bytes;
    std::uint32_t times;       // softhca::card_times
    std::uint32_t adversarial; // whether send queues execute in the adversarial order
    std::uint64_t order_seed;  // of the adversarial order
    softhca::card card;        // what the devices can do
    alignas(64) statistics counts;
    fault_plan faults;
    change_schedule schedule;
    std::array<port_counters, max_functions> ports;

    std::array<client_record, max_clients> clients; // index 0 is never used
    std::array<function_record, max_functions> function_table;
    table<channel_record, max_channels> channels;
    table<flow_counter_record, max_flow_counters> flow_counters;
    table<pd_record, max_pds> pds;
    table<uar_record, max_uars> uars;
    table<umem_record, max_umems> umems;
    table<cq_record, max_cqs> cqs;
    table<srq_record, max_srqs> srqs;
    table<qp_record, max_qps> qps;
    table<mkey_record, max_mkeys> mkeys;
    translation_table translations;
    completion_journal journal;
    move_batch moves;
    translation_scratch read_entries;
    alignas(memic_page_bytes) std::array<memic_device, max_devices> memic;

    // The record of a key as a WQE names it: the index is in the upper 24 bits, and the variant in the low 8 has to
    // match.
    mkey_record* find_key(std::uint32_t key)
    {
        mkey_record* const found = mkeys.find(key >> 8);
        return found != nullptr && (found->variant == (key & 0xff) || card.ignores_variants) ? found : nullptr;
    }
};

// The device memory that this fabric has.
inline std::span<memic_device> used_devices(arena& memory)
{
    const std::uint32_t last = memory.functions == 0 ? 0 : memory.function_table[memory.functions - 1].device;
    return std::span(memory.memic).first(last + 1);
}

// The address in this process of a range of space::memic. Null when the range is not inside one device.
inline std::byte* memic_at(arena& memory, std::uint64_t address, std::uint64_t length)
{
    const std::uint64_t device = address / memic_bytes;
    const std::uint64_t offset = address % memic_bytes;
    return device < max_devices && length <= memic_bytes - offset ? memory.memic[device].bytes.data() + offset
                                                                  : nullptr;
}

// What the current turn may still move before others get the lock. Only requests that can continue later count. A turn
// is about a tenth of a millisecond of work.
struct turn {
    std::uint32_t pieces = 1024;
    std::uint64_t bytes  = 1U << 20;

    bool used_up() const { return pieces == 0 || bytes == 0; }

    void use(std::uint64_t moved_pieces, std::uint64_t moved_bytes)
    {
        pieces -= static_cast<std::uint32_t>(std::min<std::uint64_t>(pieces, moved_pieces));
        bytes -= std::min(bytes, moved_bytes);
    }
};

class adversarial_order;

// The state that the functions of the model work on, in one process.
struct environment {
    arena& memory;
    host& outside;
    client_id self;
    std::uint64_t owed_ns = 0;          // modelled time (--times) to spend after the lock is released
    softhca::turn turn{};               // of the send queue being executed
    adversarial_order* order = nullptr; // null: send queues execute in the order of posting
};

} // namespace ucxl::softhca

// The slot table: finds the window of an offset of the arena, and manages the free ranges.
//
// The arena is cut into slots of 64 MiB. A slot is free, belongs to a large window, or is carved into equal chunks of a
// power of two (64 KiB .. 32 MiB) with at most one window each. A lookup is a shift and one or two loads, and a small
// window does not use up a slot. Offsets count from the start of the arena.
//
//     offset 0        64 MiB       128 MiB      192 MiB
//     | chunks of 64K | big window ............ | free ...
//
// Freed chunks queue behind the other free chunks of their size. The search for free slots starts where the last one
// ended. So a range is reused as late as possible. A slot whose chunks are all free is given back when no free slot is
// left.
//
// Ranges come from one of several areas, as the caller wants. Areas share nothing but the table that lookup() reads.
//
// Thread safety: lookup() at any time; everything else by one thread at a time. Calls wait_for_readers() before it
// frees a chunk table.
//
// Example: auto range = table.allocate(100000); table.publish(*range, w); table.lookup(range->offset + 5) == w;
#pragma once

#include "sys/error.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace ucxl
{

class window;

// Slots in which ranges may be.
struct slot_area {
    std::uint32_t first;
    std::uint32_t count;
};

struct window_range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0; // whole chunks or slots
};

class slot_table
{
public:
    static constexpr unsigned slot_shift       = 26; // 64 MiB
    static constexpr unsigned min_chunk_shift  = 16; // 64 KiB
    static constexpr unsigned max_chunk_shift  = slot_shift - 1;
    static constexpr std::uint64_t slot_length = std::uint64_t{1} << slot_shift;
    static constexpr std::uint32_t max_slots   = 1u << 20; // 64 TiB
    // Of the windows that are published: the lowest bits of their addresses are used for something else.
    static constexpr std::size_t window_alignment = 64;

    // num_slots <= max_slots, all of them in one area. Errors: no_memory.
    static result<std::unique_ptr<slot_table>> create(std::uint32_t num_slots);
    // The areas are in ascending order and do not overlap. Slots in none of them are never handed out.
    static result<std::unique_ptr<slot_table>> create(std::uint32_t num_slots, std::span<const slot_area> areas);
    ~slot_table();
    slot_table(const slot_table&)            = delete;
    slot_table& operator=(const slot_table&) = delete;

    // The window of the chunk or slot that holds the offset, or null. The offset must be inside the arena.
    const window* lookup(std::uint64_t offset) const
    {
        const std::uintptr_t slot  = _slots[offset >> slot_shift].load();
        const std::uintptr_t shift = slot & shift_mask;
        if (shift == 0) {
            return reinterpret_cast<const window*>(slot);
        }
        return chunks_at(slot).windows()[(offset & (slot_length - 1)) >> shift].load();
    }

    // Finds a free range of at least `length` > 0 bytes in the area of this number. Errors: no_memory.
    result<window_range> allocate(std::uint64_t length, std::size_t area = 0);
    void publish(const window_range& range, const window* window);
    // From now on lookup() returns null; whoever found the window before may still be using it.
    void unpublish(const window_range& range) { publish(range, nullptr); }
    // The range must be unpublished.
    void release(const window_range& range);
    // Calls fn(window) once for every published window.
    template <typename Fn>
    void for_each(Fn&& fn) const
    {
        std::uintptr_t before = 0; // a window over several slots is in each of them
        for (std::uint32_t number = 0; number < _num_slots; ++number) {
            const std::uintptr_t slot = _slots[number].load();
            if ((slot & shift_mask) != 0) {
                const chunk_table& chunks = chunks_at(slot);
                for (std::uint32_t chunk = 0; chunk < chunks.num_chunks; ++chunk) {
                    if (const window* const window = chunks.windows()[chunk].load()) {
                        fn(window);
                    }
                }
            } else if (slot != 0 && slot != before) {
                fn(reinterpret_cast<const window*>(slot));
            }
            before = slot;
        }
    }

private:
    // What _slots holds: the address of a window over the slot, or that of a chunk table with the shift of its chunks
    // in the lowest bits, so that a lookup finds both by one load; 0 for none.
    static constexpr std::uintptr_t shift_mask = window_alignment - 1;
    static constexpr std::uint32_t no_chunk    = UINT32_MAX;
    static_assert(max_chunk_shift <= shift_mask);
    // The number of a chunk is slot << chunk_bits | chunk.
    static constexpr unsigned chunk_bits = slot_shift - min_chunk_shift;

    // The windows follow it.
    struct alignas(window_alignment) chunk_table {
        using place = std::atomic<const window*>;

        unsigned shift;
        std::uint32_t num_chunks;
        std::uint32_t num_used                = 0;
        std::unique_ptr<std::uint32_t[]> next = nullptr; // the next free chunk of this size

        place* windows() { return reinterpret_cast<place*>(this + 1); }
        const place* windows() const { return reinterpret_cast<const place*>(this + 1); }

        // Null without memory.
        static chunk_table* create(unsigned shift);
        static void operator delete(void* memory) { ::operator delete(memory, std::align_val_t{window_alignment}); }
    };
    static chunk_table& chunks_at(std::uintptr_t slot) { return *reinterpret_cast<chunk_table*>(slot & ~shift_mask); }

    struct chunk_queue {
        std::uint32_t head = no_chunk;
        std::uint32_t tail = no_chunk;
    };

    struct area_state {
        slot_area slots;
        std::uint32_t search; // where the next search for free slots starts, counted from the first one
        std::array<chunk_queue, max_chunk_shift + 1> free{}; // by shift
    };

    slot_table() = default;

    area_state& area_of(std::uint32_t slot);
    chunk_table* chunks_of(std::uint32_t slot) const;
    std::uint32_t& next_of(std::uint32_t chunk) const;
    void push(chunk_queue& queue, std::uint32_t chunk) const;
    result<std::uint32_t> take_slots(area_state& area, std::uint32_t count);
    bool find_free_slots(const area_state& area, std::uint32_t count, std::uint32_t& first) const;
    result<void> carve(area_state& area, unsigned shift);
    bool reclaim_carved_slots(area_state& area);

    std::uint32_t _num_slots = 0;
    std::unique_ptr<std::atomic<std::uintptr_t>[]> _slots;
    std::unique_ptr<bool[]> _taken;
    std::vector<area_state> _areas;
};

} // namespace ucxl

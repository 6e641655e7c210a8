#include "slot_table.h"

#include "reader_section.h"

#include <algorithm>
#include <bit>
#include <new>

namespace ucxl
{

result<std::unique_ptr<slot_table>> slot_table::create(std::uint32_t num_slots)
{
    const slot_area all{0, num_slots};
    return create(num_slots, {&all, 1});
}

result<std::unique_ptr<slot_table>> slot_table::create(std::uint32_t num_slots, std::span<const slot_area> areas)
{
    std::unique_ptr<slot_table> table(new (std::nothrow) slot_table);
    if (table != nullptr) {
        table->_num_slots = num_slots;
        table->_slots.reset(new (std::nothrow) std::atomic<std::uintptr_t>[num_slots]());
        table->_taken.reset(new (std::nothrow) bool[num_slots]());
    }
    if (table == nullptr || table->_slots == nullptr || table->_taken == nullptr) {
        return fail(errc::no_memory, "no memory for the table of window slots");
    }
    for (const slot_area& slots : areas) {
        table->_areas.push_back({.slots = slots, .search = 0});
    }
    return table;
}

slot_table::~slot_table()
{
    for (std::uint32_t slot = 0; slot < _num_slots && _slots != nullptr; ++slot) {
        delete chunks_of(slot);
    }
}

slot_table::chunk_table* slot_table::chunk_table::create(unsigned shift)
{
    const std::uint32_t num_chunks = 1u << (slot_shift - shift);
    const std::size_t length       = sizeof(chunk_table) + num_chunks * sizeof(place);
    void* const memory             = ::operator new(length, std::align_val_t{window_alignment}, std::nothrow);
    if (memory == nullptr) {
        return nullptr;
    }
    std::unique_ptr<chunk_table> created(new (memory) chunk_table{.shift = shift, .num_chunks = num_chunks});
    std::uninitialized_value_construct_n(created->windows(), num_chunks);
    created->next.reset(new (std::nothrow) std::uint32_t[num_chunks]);
    return created->next != nullptr ? created.release() : nullptr;
}

slot_table::area_state& slot_table::area_of(std::uint32_t slot)
{
    return *std::ranges::find_if(_areas,
                                 [slot](const area_state& each) { return slot - each.slots.first < each.slots.count; });
}

slot_table::chunk_table* slot_table::chunks_of(std::uint32_t slot) const
{
    const std::uintptr_t value = _slots[slot].load(std::memory_order_relaxed);
    return (value & shift_mask) != 0 ? &chunks_at(value) : nullptr;
}

std::uint32_t& slot_table::next_of(std::uint32_t chunk) const
{
    return chunks_of(chunk >> chunk_bits)->next[chunk & ((1u << chunk_bits) - 1)];
}

void slot_table::push(chunk_queue& queue, std::uint32_t chunk) const
{
    next_of(chunk) = no_chunk;
    if (queue.head == no_chunk) {
        queue.head = chunk;
    } else {
        next_of(queue.tail) = chunk;
    }
    queue.tail = chunk;
}

result<window_range> slot_table::allocate(std::uint64_t length, std::size_t area)
{
    auto& from = _areas[area];
    if (length > slot_length / 2) {
        const std::uint64_t count = (length - 1) / slot_length + 1;
        if (count > from.slots.count) {
            return fail(errc::no_memory, "the window needs more addresses than were reserved");
        }
        return take_slots(from, static_cast<std::uint32_t>(count)).transform([count](std::uint32_t first) {
            return window_range{first * slot_length, count * slot_length};
        });
    }
    const unsigned shift = std::max<unsigned>(std::bit_width(length - 1), min_chunk_shift);
    chunk_queue& queue   = from.free[shift];
    if (queue.head == no_chunk) {
        UCXL_TRY(carve(from, shift));
    }
    const std::uint32_t chunk = queue.head;
    queue.head                = next_of(chunk);
    const std::uint32_t slot  = chunk >> chunk_bits;
    ++chunks_of(slot)->num_used;
    const std::uint64_t index = chunk & ((1u << chunk_bits) - 1);
    return window_range{slot * slot_length + (index << shift), std::uint64_t{1} << shift};
}

void slot_table::publish(const window_range& range, const window* window)
{
    const auto slot = static_cast<std::uint32_t>(range.offset >> slot_shift);
    if (chunk_table* chunks = chunks_of(slot); chunks != nullptr) {
        chunks->windows()[(range.offset & (slot_length - 1)) >> chunks->shift].store(window);
        return;
    }
    for (std::uint64_t i = 0; i < range.length >> slot_shift; ++i) {
        _slots[slot + i].store(reinterpret_cast<std::uintptr_t>(window));
    }
}

void slot_table::release(const window_range& range)
{
    const auto slot = static_cast<std::uint32_t>(range.offset >> slot_shift);
    if (chunk_table* chunks = chunks_of(slot); chunks != nullptr) {
        const auto index = static_cast<std::uint32_t>((range.offset & (slot_length - 1)) >> chunks->shift);
        push(area_of(slot).free[chunks->shift], slot << chunk_bits | index);
        --chunks->num_used;
        return;
    }
    std::fill_n(_taken.get() + slot, range.length >> slot_shift, false);
}

bool slot_table::find_free_slots(const area_state& area, std::uint32_t count, std::uint32_t& first) const
{
    // The search goes around twice, less the part seen twice: a run of free slots may span the start of the search, but
    // not the end of the area.
    const bool* const taken = _taken.get() + area.slots.first;
    std::uint32_t run       = 0;
    for (std::uint64_t step = 0; step < std::uint64_t{area.slots.count} + count; ++step) {
        const auto slot = static_cast<std::uint32_t>((area.search + step) % area.slots.count);
        run             = (slot == 0 ? 0 : run) + 1;
        if (taken[slot]) {
            run = 0;
        } else if (run == count) {
            first = area.slots.first + slot + 1 - count;
            return true;
        }
    }
    return false;
}

result<std::uint32_t> slot_table::take_slots(area_state& area, std::uint32_t count)
{
    std::uint32_t first = 0;
    if (!find_free_slots(area, count, first) && !(reclaim_carved_slots(area) && find_free_slots(area, count, first))) {
        return fail(errc::no_memory, "no range of " + std::to_string(count * (slot_length >> 20)) +
                                         " MiB is left of the " +
                                         std::to_string(area.slots.count * (slot_length >> 20)) +
                                         " MiB reserved for such windows (UCX_LAYOUT_ARENA_SIZE)");
    }
    std::fill_n(_taken.get() + first, count, true);
    area.search = (first - area.slots.first + count) % area.slots.count;
    return first;
}

result<void> slot_table::carve(area_state& area, unsigned shift)
{
    std::unique_ptr<chunk_table> chunks(chunk_table::create(shift));
    if (chunks == nullptr) {
        return fail(errc::no_memory, "no memory for a table of windows");
    }
    auto slot                      = UCXL_TRY(take_slots(area, 1));
    const std::uint32_t num_chunks = chunks->num_chunks;
    _slots[slot].store(reinterpret_cast<std::uintptr_t>(chunks.release()) + shift);
    for (std::uint32_t i = 0; i < num_chunks; ++i) {
        push(area.free[shift], slot << chunk_bits | i);
    }
    return {};
}

bool slot_table::reclaim_carved_slots(area_state& area)
{
    const auto is_unused = [this](std::uint32_t slot) {
        const chunk_table* chunks = chunks_of(slot);
        return chunks != nullptr && chunks->num_used == 0;
    };
    for (chunk_queue& queue : area.free) {
        chunk_queue kept;
        for (std::uint32_t chunk = queue.head; chunk != no_chunk;) {
            const std::uint32_t next = next_of(chunk);
            if (!is_unused(chunk >> chunk_bits)) {
                push(kept, chunk);
            }
            chunk = next;
        }
        queue = kept;
    }
    bool any = false;
    for (std::uint32_t slot = area.slots.first; slot < area.slots.first + area.slots.count; ++slot) {
        if (is_unused(slot)) {
            std::unique_ptr<chunk_table> chunks(chunks_of(slot));
            _slots[slot].store(0);
            wait_for_readers();
            _taken[slot] = false;
            any          = true;
        }
    }
    return any;
}

} // namespace ucxl

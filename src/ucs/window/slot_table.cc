#include "slot_table.h"

#include "reader_section.h"

#include <algorithm>
#include <bit>
#include <new>

namespace ucxl
{

result<std::unique_ptr<slot_table>> slot_table::create(std::uint32_t num_slots)
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
    return table;
}

slot_table::~slot_table()
{
    for (std::uint32_t slot = 0; slot < _num_slots && _slots != nullptr; ++slot) {
        delete chunks_of(slot);
    }
}

slot_table::chunk_table* slot_table::chunks_of(std::uint32_t slot) const
{
    const std::uintptr_t value = _slots[slot].load(std::memory_order_relaxed);
    return (value & chunk_tag) != 0 ? reinterpret_cast<chunk_table*>(value - chunk_tag) : nullptr;
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

result<window_range> slot_table::allocate(std::uint64_t length)
{
    if (length > slot_length / 2) {
        const std::uint64_t count = (length - 1) / slot_length + 1;
        if (count > _num_slots) {
            return fail(errc::no_memory, "the window needs more addresses than were reserved");
        }
        return take_slots(static_cast<std::uint32_t>(count)).transform([count](std::uint32_t first) {
            return window_range{first * slot_length, count * slot_length};
        });
    }
    const unsigned shift = std::max<unsigned>(std::bit_width(length - 1), min_chunk_shift);
    chunk_queue& queue   = _free[shift];
    if (queue.head == no_chunk) {
        UCXL_TRY(carve(shift));
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
        chunks->windows[(range.offset & (slot_length - 1)) >> chunks->shift].store(window);
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
        push(_free[chunks->shift], slot << chunk_bits | index);
        --chunks->num_used;
        return;
    }
    std::fill_n(_taken.get() + slot, range.length >> slot_shift, false);
}

bool slot_table::find_free_slots(std::uint32_t count, std::uint32_t& first) const
{
    // The search goes around twice, less the part seen twice: a run of free slots may span the start of the search, but
    // not the end of the arena.
    std::uint32_t run = 0;
    for (std::uint64_t step = 0; step < std::uint64_t{_num_slots} + count; ++step) {
        const auto slot = static_cast<std::uint32_t>((_search + step) % _num_slots);
        run             = (slot == 0 ? 0 : run) + 1;
        if (_taken[slot]) {
            run = 0;
        } else if (run == count) {
            first = slot + 1 - count;
            return true;
        }
    }
    return false;
}

result<std::uint32_t> slot_table::take_slots(std::uint32_t count)
{
    std::uint32_t first = 0;
    if (!find_free_slots(count, first) && !(reclaim_carved_slots() && find_free_slots(count, first))) {
        return fail(errc::no_memory, "no range of " + std::to_string(count * (slot_length >> 20)) +
                                         " MiB is left of the " + std::to_string(_num_slots * (slot_length >> 20)) +
                                         " MiB reserved for windows (UCX_LAYOUT_ARENA_SIZE)");
    }
    std::fill_n(_taken.get() + first, count, true);
    _search = (first + count) % _num_slots;
    return first;
}

result<void> slot_table::carve(unsigned shift)
{
    std::unique_ptr<chunk_table> chunks(new (std::nothrow) chunk_table{});
    if (chunks != nullptr) {
        chunks->shift      = shift;
        chunks->num_chunks = 1u << (slot_shift - shift);
        chunks->windows.reset(new (std::nothrow) std::atomic<const window*>[chunks->num_chunks]());
        chunks->next.reset(new (std::nothrow) std::uint32_t[chunks->num_chunks]);
    }
    if (chunks == nullptr || chunks->windows == nullptr || chunks->next == nullptr) {
        return fail(errc::no_memory, "no memory for a table of windows");
    }
    auto slot                      = UCXL_TRY(take_slots(1));
    const std::uint32_t num_chunks = chunks->num_chunks;
    _slots[slot].store(reinterpret_cast<std::uintptr_t>(chunks.release()) + chunk_tag);
    for (std::uint32_t i = 0; i < num_chunks; ++i) {
        push(_free[shift], slot << chunk_bits | i);
    }
    return {};
}

bool slot_table::reclaim_carved_slots()
{
    const auto is_unused = [this](std::uint32_t slot) {
        const chunk_table* chunks = chunks_of(slot);
        return chunks != nullptr && chunks->num_used == 0;
    };
    for (chunk_queue& queue : _free) {
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
    for (std::uint32_t slot = 0; slot < _num_slots; ++slot) {
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

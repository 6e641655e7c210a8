#include "limit_side.h"

#include "counter.h"

#include <stdexcept>
#include <type_traits>

namespace ucxl::bench
{

namespace
{

// As long as the segments of UCX's posix transport.
constexpr std::size_t slot_length = 8192;

std::size_t part_length(std::size_t length)
{
    return std::clamp<std::size_t>(length / 4, 1024, slot_length - line_length);
}

} // namespace

// From one process to the other.
struct limit_side::ring {
    struct slot {
        counter filled;
        alignas(line_length) std::byte bytes[slot_length];
    };
    counter taken;
    slot slots[long_queue];
};

void limit_side::share(std::span<std::byte> both)
{
    static_assert(2 * sizeof(ring) + one_pass::flags_length <= queue_memory_length);
    static_assert(std::is_trivially_destructible_v<ring>);
    // Zeroed memory is a ring; both processes only look at it.
    auto* const rings = reinterpret_cast<ring*>(both.data());
    _out              = rings + (_is_first ? 0 : 1);
    _in               = rings + (_is_first ? 1 : 0);
    _pass.share(both.subspan(2 * sizeof(ring), one_pass::flags_length));
}

void limit_side::prepare(const layout_case& of, const side_memory& memory)
{
    _memory = memory;
    _pass.prepare(of, memory);
    const std::size_t num = (of.length + part_length(of.length) - 1) / part_length(of.length);
    const auto packed     = footprint(of.length, shift_of(memory.packed_source.data())).divide(num);
    const auto strided    = footprint(*of.type, of.extent, shift_of(memory.source.data())).divide(num);
    _strided = _packed = {};
    for (std::size_t i = 0; i < num; ++i) {
        std::size_t length = 0;
        for (const line_run& run : packed[i]) {
            length += run.count;
        }
        if (length > slot_length / line_length) {
            throw std::logic_error("a part that is longer than a slot");
        }
        const line_run slot[] = {{.first = 0, .count = length, .whole = true}};
        _strided.in.emplace_back(slot, strided[i]);
        _strided.out.emplace_back(strided[i], slot);
        _packed.in.emplace_back(slot, packed[i]);
        _packed.out.emplace_back(packed[i], slot);
    }
}

void limit_side::queue_in(const parts& source, const std::byte* from, std::size_t num_slots)
{
    for (const line_plan& part : source.in) {
        ring::slot& slot = _out->slots[_sent % num_slots];
        // To look costs a line that the other process writes.
        if (_sent - _free >= num_slots) {
            _free = _out->taken.wait_for(_sent - num_slots + 1);
        }
        // What is on its way to the other core stays in the caches, whatever the ends do.
        part.run(slot.bytes, first_line(from), copy_kind::plain);
        slot.filled.set(++_sent);
    }
}

void limit_side::queue_out(const parts& target, std::byte* to, copy_kind kind, std::size_t num_slots)
{
    for (const line_plan& part : target.out) {
        const ring::slot& slot = _in->slots[_received % num_slots];
        slot.filled.wait_for(++_received);
        part.run(first_line(to), slot.bytes, kind);
        _in->taken.set(_received);
    }
}

void limit_side::send_limit(const limit_way& way)
{
    if (way.by == limit::direct) {
        _pass.offer();
    } else {
        queue_in(_strided, _memory.source.data(), length_of(way.by));
    }
}

void limit_side::receive_limit(const limit_way& way)
{
    if (way.by == limit::direct) {
        _pass.take(way);
    } else {
        const copy_kind kind        = way.streaming ? copy_kind::streaming : copy_kind::plain;
        const std::size_t num_slots = length_of(way.by);
        way.to_strided ? queue_out(_strided, _memory.target.data(), kind, num_slots)
                       : queue_out(_packed, _memory.packed_target.data(), kind, num_slots);
    }
}

} // namespace ucxl::bench

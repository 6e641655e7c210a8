#include "one_pass.h"

#include "counter.h"

namespace ucxl::bench
{

// From one process to the other.
struct one_pass::flags {
    counter offered, done;
};

void one_pass::share(std::span<std::byte> both)
{
    static_assert(2 * sizeof(flags) <= flags_length);
    auto* const all = reinterpret_cast<flags*>(both.data());
    _out            = all + (_is_first ? 0 : 1);
    _in             = all + (_is_first ? 1 : 0);
}

void one_pass::prepare(const layout_case& moved, const side_memory& memory)
{
    const footprint source(*moved.type, moved.extent, shift_of(memory.source.data()));
    const footprint target(*moved.type, moved.extent, shift_of(memory.target.data()));
    const footprint packed(moved.length, shift_of(memory.packed_target.data()));
    _memory     = memory;
    _to_strided = line_plan(target.all(), source.all());
    _to_packed  = line_plan(packed.all(), source.all());
}

void one_pass::copy(const limit_way& way)
{
    const std::span<std::byte> target = way.to_strided ? _memory.target : _memory.packed_target;
    (way.to_strided ? _to_strided : _to_packed)
        .run(first_line(target.data()), first_line(_memory.source.data()),
             way.streaming ? copy_kind::streaming : copy_kind::plain);
}

void one_pass::offer()
{
    _out->offered.set(++_offered);
    _out->done.wait_for(_offered);
}

void one_pass::take(const limit_way& way)
{
    _in->offered.wait_for(++_taken);
    copy(way);
    _in->done.set(_taken);
}

} // namespace ucxl::bench

#include "pack_plan.h"

#include "stream.h"
#include "transfer.h"

#include <cassert>
#include <format>
#include <new>

namespace ucxl
{

namespace
{

// Of one call into a large memory.
constexpr std::uint64_t min_streamed_fragment = 4096;

} // namespace

pack_plan::pack_plan(layout_ptr of, std::unique_ptr<const program> code)
    : _layout(std::move(of)), _program(std::move(code))
{
}

pack_plan::~pack_plan() = default;

result<pack_plan_ptr> pack_plan::compile(layout_ptr of)
{
    try {
        auto code = std::make_unique<program>(program{compile_program(*of)});
        if (of->packed_length() >= min_streamed_length) {
            code->gather_streams  = can_gather_streaming(*code);
            code->scatter_streams = can_scatter_streaming(*code);
        }
        return pack_plan_ptr(new pack_plan(std::move(of), std::move(code)));
    } catch (const std::bad_alloc&) {
        // Short enough to need no memory itself.
        return fail(errc::no_memory, "pack plan");
    }
}

void pack_plan::gather(base_list bases, std::uint64_t offset, std::uint64_t length, void* to) const
{
    assert(offset <= packed_length() && length <= packed_length() - offset && bases.size() >= _layout->num_sources());
    if (_program->gather_streams && length >= min_streamed_length) {
        gather_streaming(*_program, bases, offset, length, static_cast<std::byte*>(to));
    } else if (length > 0) {
        transfer<direction::gather>(*_program, bases, offset, length, static_cast<std::byte*>(to));
    }
}

void pack_plan::scatter(base_list bases, std::uint64_t offset, std::uint64_t length, const void* from) const
{
    assert(offset <= packed_length() && length <= packed_length() - offset && bases.size() >= _layout->num_sources());
    if (_program->scatter_streams && length >= min_streamed_fragment) {
        scatter_streaming(*_program, bases, offset, length, static_cast<const std::byte*>(from));
    } else if (length > 0) {
        transfer<direction::scatter>(*_program, bases, offset, length, static_cast<const std::byte*>(from));
    }
}

std::string pack_plan::describe() const
{
    std::string text = describe_program(*_program);
    if (_program->gather_streams) {
        text += std::format("\ngathers of {} bytes and more go past the caches", min_streamed_length);
    }
    if (_program->scatter_streams) {
        text += std::format("\nscatters of {} bytes and more go past the caches", min_streamed_fragment);
    }
    return text;
}

} // namespace ucxl

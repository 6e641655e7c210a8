#include "pack_plan.h"

#include "far_blocks.h"
#include "packed_range.h"
#include "plan_table.h"
#include "stream.h"
#include "tile.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <format>
#include <new>

namespace ucxl
{

pack_plan::pack_plan(layout_ptr layout, std::unique_ptr<const program> code)
    : _layout(std::move(layout)), _program(std::move(code)), _tile_length(ucxl::tile_length(*_layout))
{
}

pack_plan::~pack_plan()
{
    if (_place) {
        plan_table::instance().remove(*_place);
    }
}

result<pack_plan_ptr> pack_plan::compile(layout_ptr layout)
{
    try {
        if (auto known = plan_table::instance().find(*layout)) {
            return known;
        }
        auto code = std::make_unique<program>(program{compile_program(*layout)});
        if (const std::uint64_t limit = least_streaming_limit(); layout->packed_length() >= limit) {
            code->min_streamed_gather = can_gather_streaming(*code) ? limit : no_streaming;
            code->min_streamed_copy   = can_copy_streaming(*code) ? limit : no_streaming;
            if (can_scatter_streaming(*code)) {
                code->min_streamed_scatter = min_streamed_call;
            }
        }
        return plan_table::instance().share(
            std::shared_ptr<pack_plan>(new pack_plan(std::move(layout), std::move(code))));
    } catch (const std::bad_alloc&) {
        // This message is short enough to need no memory.
        return fail(errc::no_memory, "pack plan");
    }
}

bool pack_plan::is_divisible() const
{
    return _tile_length == 0 && std::ranges::none_of(_program->steps, [](const step& step) {
               const auto* const run = as<run_step>(step);
               return as<zip_step>(step) != nullptr ||
                      (run != nullptr && (run->is_panel || are_far_blocks(run->blocks)));
           });
}

void pack_plan::gather(base_list bases, std::uint64_t offset, std::uint64_t length, void* to, std::uint64_t whole) const
{
    assert(offset <= packed_length() && length <= packed_length() - offset && bases.size() >= _layout->num_sources());
    const std::uint64_t large = std::max(length, whole);
    if (large >= _program->min_streamed_gather && passes_caches(length, large)) {
        gather_streaming(*_program, bases, offset, length, static_cast<std::byte*>(to));
    } else if (length > 0) {
        move_range<direction::gather>(*_program, bases, offset, length, static_cast<std::byte*>(to));
    }
}

void pack_plan::scatter(base_list bases, std::uint64_t offset, std::uint64_t length, const void* from,
                        std::uint64_t whole) const
{
    assert(offset <= packed_length() && length <= packed_length() - offset && bases.size() >= _layout->num_sources());
    if (std::max(length, whole) >= _program->min_streamed_scatter && passes_caches(length, packed_length())) {
        scatter_streaming(*_program, bases, offset, length, static_cast<const std::byte*>(from));
    } else if (length > 0) {
        move_range<direction::scatter>(*_program, bases, offset, length, static_cast<const std::byte*>(from));
    }
}

block_row pack_plan::row_at(base_list bases) const
{
    block_row row;
    if (_program->steps.empty()) {
        return row;
    }
    const auto* const only = as<run_step>(_program->steps[_program->root.child]);
    if (only == nullptr || only->is_panel || only->blocks.outer_count != 1) {
        return row;
    }
    row._memory        = bases[_program->root.source] + _program->root.offset;
    row._block         = only->blocks.length;
    row._stride        = only->blocks.stride;
    row._gather_limit  = streamed_gather();
    row._scatter_limit = streamed_scatter();
    row._shift =
        std::has_single_bit(row._block) ? static_cast<unsigned>(std::countr_zero(row._block)) : block_row::no_shift;
    row._gather  = only->kernels->gather;
    row._scatter = only->kernels->scatter;
    row._copy    = best_kernels().copy;
    return row;
}

std::string pack_plan::describe() const
{
    std::string text = describe_program(*_program);
    const auto line  = [&](const char* direction, std::uint64_t limit) {
        if (limit != no_streaming) {
            text += std::format("\n{} of {} bytes and more go past the caches", direction, limit);
        }
    };
    line("gathers", streamed_gather());
    line("scatters", streamed_scatter());
    return text;
}

std::uint64_t pack_plan::streamed_gather() const
{
    return packed_length() >= streaming_limit() ? std::max(_program->min_streamed_gather, streaming_limit())
                                                : no_streaming;
}

std::uint64_t pack_plan::streamed_scatter() const
{
    return packed_length() >= streaming_limit() ? _program->min_streamed_scatter : no_streaming;
}

} // namespace ucxl

// Moves a packed sub-range of a run: kernels move the whole blocks, and this file moves the cut blocks at both ends.
#pragma once

#include "copy_block.h"
#include "packed_range.h"

namespace ucxl
{

template <direction way>
struct block_mover {
    using packed_t = packed_pointer<way>;

    static void bytes(packed_t packed, std::byte* memory, std::uint64_t length)
    {
        if constexpr (way == direction::gather) {
            one(packed, memory, length);
        } else {
            one(memory, packed, length);
        }
    }

    static void one(std::byte* to, const std::byte* from, std::uint64_t length)
    {
        if (length > max_inline_length) {
            best_kernels().copy(to, from, length);
        } else {
            copy_any<16>(to, from, length);
        }
    }

    static void blocks(const block_kernels& kernels, packed_t packed, std::byte* memory, const block_run& run)
    {
        if constexpr (way == direction::gather) {
            kernels.gather(packed, memory, run);
        } else {
            kernels.scatter(memory, packed, run);
        }
    }

    // `kernels` are those of the run, or others for blocks of the same length.
    static void run(const run_step& run_of, const block_kernels& kernels, std::byte* memory, std::uint64_t skip,
                    std::uint64_t length, packed_t packed)
    {
        const block_run& shape = run_of.blocks;
        if (run_of.is_panel) {
            panel(run_of, memory, skip, length, packed);
            return;
        }
        if (length == run_of.packed_length) {
            blocks(kernels, packed, memory, shape);
            return;
        }
        if (shape.outer_count == 1) {
            row(run_of, kernels, memory, skip, length, packed);
            return;
        }
        const std::uint64_t row_length = shape.row_length();
        const std::uint64_t first      = skip / row_length;
        skip -= first * row_length;
        memory += static_cast<std::int64_t>(first) * shape.outer_stride;
        if (skip > 0 || length < row_length) {
            const std::uint64_t head = std::min(length, row_length - skip);
            row(run_of, kernels, memory, skip, head, packed);
            memory += shape.outer_stride;
            packed += head;
            length -= head;
        }
        if (const std::uint64_t rows = length / row_length; rows > 0) {
            block_run part   = shape;
            part.outer_count = rows;
            blocks(kernels, packed, memory, part);
            memory += static_cast<std::int64_t>(rows) * shape.outer_stride;
            packed += rows * row_length;
            length -= rows * row_length;
        }
        if (length > 0) {
            row(run_of, kernels, memory, 0, length, packed);
        }
    }

    static void panel(const run_step& run_of, std::byte* memory, std::uint64_t skip, std::uint64_t length,
                      packed_t packed)
    {
        const block_run& shape = run_of.blocks;
        const auto block_at    = [&](std::uint64_t row, std::uint64_t i) {
            return memory + static_cast<std::int64_t>(row) * shape.outer_stride +
                   static_cast<std::int64_t>(i) * shape.stride;
        };
        std::uint64_t first = skip / shape.length, row = first / shape.count, i = first - row * shape.count;
        if (skip -= first * shape.length; skip > 0) {
            const std::uint64_t head = std::min(length, shape.length - skip);
            bytes(packed, block_at(row, i) + skip, head);
            packed += head;
            length -= head;
            ++first;
            if (++i == shape.count) {
                i = 0;
                ++row;
            }
        }
        const std::uint64_t blocks = length / shape.length, end = first + blocks;
        const std::uint64_t end_row = end / shape.count, end_i = end - end_row * shape.count;
        // Cut rows at the ends leave up to three panels of whole rows.
        const std::uint64_t cuts[] = {0, std::min(i, end_i), std::max(i, end_i), shape.count};
        for (std::size_t k = 0; k < 3; ++k) {
            const std::uint64_t low = cuts[k], high = cuts[k + 1];
            const std::uint64_t from_row = low >= i ? row : row + 1, to_row = high <= end_i ? end_row + 1 : end_row;
            if (low < high && from_row < to_row) {
                panel_blocks(*run_of.kernels, packed + (from_row * shape.count + low - first) * shape.length,
                             block_at(from_row, low),
                             {.count      = high - low,
                              .stride     = shape.stride,
                              .rows       = to_row - from_row,
                              .row_stride = shape.outer_stride,
                              .pitch      = static_cast<std::int64_t>(shape.row_length())},
                             shape.length);
            }
        }
        if (length -= blocks * shape.length; length > 0) {
            bytes(packed + blocks * shape.length, block_at(end_row, end_i), length);
        }
    }

    static void panel_blocks(const block_kernels& kernels, packed_t packed, std::byte* memory, const block_panel& part,
                             std::uint64_t length)
    {
        if (part.rows == 1) {
            blocks(kernels, packed, memory, {.length = length, .count = part.count, .stride = part.stride});
        } else if constexpr (way == direction::gather) {
            kernels.gather_panel(packed, memory, part);
        } else {
            kernels.scatter_panel(memory, packed, part);
        }
    }

    // Moves a part of one row.
    static void row(const run_step& run_of, const block_kernels& kernels, std::byte* memory, std::uint64_t skip,
                    std::uint64_t length, packed_t packed)
    {
        const block_run& shape = run_of.blocks;
        if (shape.count == 1) {
            bytes(packed, memory + skip, length);
            return;
        }
        const std::uint64_t first = skip / shape.length;
        skip -= first * shape.length;
        memory += static_cast<std::int64_t>(first) * shape.stride;
        if (skip > 0 || length < shape.length) {
            const std::uint64_t head = std::min(length, shape.length - skip);
            bytes(packed, memory + skip, head);
            memory += shape.stride;
            packed += head;
            length -= head;
        }
        const std::uint64_t whole = length / shape.length;
        if (whole > 0) {
            blocks(kernels, packed, memory, {.length = shape.length, .count = whole, .stride = shape.stride});
        }
        const std::uint64_t tail = length - whole * shape.length;
        if (tail > 0) {
            bytes(packed + whole * shape.length, memory + static_cast<std::int64_t>(whole) * shape.stride, tail);
        }
    }
};

} // namespace ucxl

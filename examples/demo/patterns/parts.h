// Shared by several patterns: a strided part of one array, and copies of blocks whose size the compiler knows.
#pragma once

#include "examples/common/check.h"
#include "examples/demo/pattern.h"

#include <array>
#include <cstring>

namespace examples
{

// A part of one array: blocks of block_bytes, the first at offset_bytes, in dimensions {count, stride}, the slowest
// first.
struct strided_part {
    std::size_t offset_bytes;
    std::size_t block_bytes;
    std::vector<ucp_layout_dim_t> dims;

    // Relative to offset_bytes.
    ucx_layout::layout make_layout() const
    {
        return must(ucx_layout::layout::create_strided({.length = block_bytes, .layout = nullptr}, dims),
                    "strided layout");
    }
};

inline ucx_layout::layout list_of(std::span<const ucp_layout_iov_t> parts)
{
    return must(ucx_layout::layout::concatenate(parts), "list layout");
}

inline void append_blocks(std::vector<block>& to, std::uint32_t array, const strided_part& part, std::size_t dim = 0,
                          std::size_t shift = 0)
{
    if (dim == part.dims.size()) {
        to.push_back({array, part.offset_bytes + shift, part.block_bytes});
        return;
    }
    for (std::size_t i = 0; i < part.dims[dim].count; ++i) {
        append_blocks(to, array, part, dim + 1, shift + i * static_cast<std::size_t>(part.dims[dim].stride));
    }
}

inline pattern_side strided_side(std::size_t array_bytes, const strided_part& part)
{
    return {.array_bytes  = {array_bytes},
            .base_offsets = {part.offset_bytes},
            .make_layout  = [part] { return part.make_layout(); },
            .blocks =
                [part] {
                    std::vector<block> all;
                    append_blocks(all, 0, part);
                    return all;
                }};
}

// Copies one block and advances the packed position.
template <std::size_t length_bytes>
inline void take(std::byte*& packed, const std::byte* from)
{
    std::memcpy(packed, from, length_bytes);
    packed += length_bytes;
}

template <std::size_t length_bytes>
inline void give(const std::byte*& packed, std::byte* to)
{
    std::memcpy(to, packed, length_bytes);
    packed += length_bytes;
}

} // namespace examples

// The first blocks of a layout, in packed order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ucp_layout.hpp>
#include <vector>

namespace ucxl::info
{

struct block {
    std::uint32_t source;
    std::ptrdiff_t offset;
    std::size_t length;
};

// At most `wanted`. Throws a failure.
std::vector<block> first_blocks(const ucx_layout::layout& layout, std::size_t wanted);

} // namespace ucxl::info

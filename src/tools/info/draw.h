// A layout as a picture: memory above, a row for each source; the window below; a band from each block to its place in
// the window.
#pragma once

#include <string>
#include <ucp_layout.hpp>

namespace ucxl::info
{

// What is beyond these is left out of the picture, which says so.
inline constexpr std::size_t drawn_blocks    = 24;
inline constexpr std::uint32_t drawn_sources = 8;

// SVG, the same for the same layout. Throws a failure.
std::string draw_as_svg(const ucx_layout::layout& layout);

} // namespace ucxl::info

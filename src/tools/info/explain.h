// Describes a layout, as text or as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <ucp_layout.hpp>

namespace ucxl::info
{

// num_blocks: how many of the first blocks to list.
std::string explain_as_text(const ucx_layout::layout& layout, std::size_t num_blocks);
std::string explain_as_json(const ucx_layout::layout& layout, std::size_t num_blocks);

// The bytes of ucp_layout_serialize.
std::string serialized_bytes(const ucx_layout::layout& layout);
std::string to_hex(const std::string& bytes);

std::string limits_as_text();

} // namespace ucxl::info

// Sizes as users write them: 4096, 4K, 1M, 2G (powers of 1024), as in layouts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ucxl::tools
{

std::optional<std::uint64_t> parse_size(std::string_view text);

// 65536 -> "64K". Other numbers stay digits.
std::string format_size(std::uint64_t size);

} // namespace ucxl::tools

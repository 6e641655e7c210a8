// Whether a layout text may ask for a long list, as [0..1000000] does. A short text can do that on purpose, so it is
// not what fuzz targets look for.
#pragma once

#include <cstddef>
#include <string_view>

namespace ucxl::fuzz
{

inline bool asks_for_much(std::string_view text)
{
    std::size_t digits = 0;
    const bool is_list = text.contains("..");
    for (char c : text) {
        digits = c >= '0' && c <= '9' ? digits + 1 : 0;
        if (is_list && (digits > 3 || c == 'K' || c == 'M' || c == 'G')) {
            return true;
        }
    }
    return false;
}

} // namespace ucxl::fuzz

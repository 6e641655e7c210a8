#include "number.h"

#include <charconv>

namespace ucxl::tools
{

namespace
{

constexpr std::string_view units = "KMGT";

} // namespace

std::optional<std::uint64_t> parse_size(std::string_view text)
{
    unsigned shift = 0;
    if (!text.empty()) {
        const std::size_t unit = units.find(text.back() == 'k' ? 'K' : text.back());
        if (unit != std::string_view::npos) {
            shift = static_cast<unsigned>(10 * (unit + 1));
            text.remove_suffix(1);
        }
    }
    std::uint64_t value     = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty() || value > (UINT64_MAX >> shift)) {
        return std::nullopt;
    }
    return value << shift;
}

std::string format_size(std::uint64_t size)
{
    std::string unit;
    for (std::size_t i = 0; i < units.size() && size != 0 && size % 1024 == 0; ++i) {
        size /= 1024;
        unit = units[i];
    }
    return std::to_string(size) + unit;
}

} // namespace ucxl::tools

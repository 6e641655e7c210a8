// Sizes as users of UCX write them in options: 4096, 128k, 1MB, inf.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace ucxl
{

namespace detail
{

constexpr char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

} // namespace detail

// Bytes: digits, then one of k, m, g, t or none of them, then b or not; or "inf", which is SIZE_MAX. Capital letters
// mean the same. None if the text is something else, or the number is beyond SIZE_MAX. Allocates nothing: the heap
// reads its options inside malloc().
constexpr std::optional<std::size_t> read_size(std::string_view text)
{
    using detail::lower;
    if (text.size() == 3 && lower(text[0]) == 'i' && lower(text[1]) == 'n' && lower(text[2]) == 'f') {
        return SIZE_MAX;
    }
    std::size_t number      = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) {
        return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    unsigned shift = 0;
    if (!text.empty()) {
        const std::size_t unit = std::string_view("kmgt").find(lower(text.front()));
        if (unit != std::string_view::npos) {
            shift = 10 * (static_cast<unsigned>(unit) + 1);
            text.remove_prefix(1);
        }
    }
    if (text.size() > 1 || (text.size() == 1 && lower(text.front()) != 'b') || number > SIZE_MAX >> shift) {
        return std::nullopt;
    }
    return number << shift;
}

} // namespace ucxl

// The word by which a reader knows the form of what another process wrote. Its letters lie in memory and on the wire in
// the order in which they are written here.
//
// Example: static constexpr auto form = magic<std::uint64_t>("UCXFAIL1");
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>

namespace ucxl
{

template <std::unsigned_integral Word>
consteval Word magic(const char (&letters)[sizeof(Word) + 1])
{
    std::array<char, sizeof(Word)> bytes{};
    std::copy_n(letters, bytes.size(), bytes.begin());
    return std::bit_cast<Word>(bytes);
}

} // namespace ucxl

// Hashing of numbers for tables inside one process. The hash of a layout is another one, because it is part of its wire
// form's contract (ucs/layout/hash.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace ucxl
{

// The finaliser of splitmix64: every bit of the value changes every bit of the result, so addresses that differ in few
// bits are spread.
constexpr std::uint64_t mix(std::uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

// FNV-1a.
constexpr std::uint64_t hash_text(std::string_view text)
{
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char letter : text) {
        value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    }
    return value;
}

} // namespace ucxl

// A big-endian bit range at a place known at compile time. No other code moves bits.
//
// Bit 0 is the most significant bit of byte 0, as in the device's manual. A range is read and written through the
// smallest naturally aligned word that holds it, so a write changes no byte outside that word (the owner byte of a CQE
// can be written last). A read compiles to a load, a byte swap, a shift and a mask.
//
//     bit_range<0x29, 3>::load(p)      bits 0x29..0x2b of the bytes at p
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>

namespace ucxl::prm
{

namespace detail
{

template <unsigned Bits>
using word_of = std::conditional_t<
    Bits == 8, std::uint8_t,
    std::conditional_t<Bits == 16, std::uint16_t, std::conditional_t<Bits == 32, std::uint32_t, std::uint64_t>>>;

constexpr bool within_aligned(unsigned offset, unsigned width, unsigned word_bits)
{
    return offset / word_bits == (offset + width - 1) / word_bits;
}

constexpr unsigned word_bits_for(unsigned offset, unsigned width)
{
    for (unsigned bits : {8U, 16U, 32U, 64U}) {
        if (within_aligned(offset, width, bits)) {
            return bits;
        }
    }
    return 64;
}

// A range across two aligned 64-bit words starts in the 32-bit word that holds its first bit.
constexpr unsigned word_start_for(unsigned offset, unsigned width)
{
    const unsigned bits = word_bits_for(offset, width);
    return within_aligned(offset, width, bits) ? offset / bits * bits : offset / 32 * 32;
}

template <std::unsigned_integral Word>
constexpr Word load_big_endian(const std::byte* from)
{
    if consteval {
        Word word = 0;
        for (std::size_t i = 0; i < sizeof(Word); i++) {
            word = static_cast<Word>((std::uint64_t{word} << 8) | std::to_integer<std::uint64_t>(from[i]));
        }
        return word;
    } else {
        Word word;
        std::memcpy(&word, from, sizeof(word));
        return std::endian::native == std::endian::little ? std::byteswap(word) : word;
    }
}

template <std::unsigned_integral Word>
constexpr void store_big_endian(std::byte* to, Word word)
{
    if consteval {
        for (std::size_t i = 0; i < sizeof(Word); i++) {
            to[i] = static_cast<std::byte>(std::uint64_t{word} >> (8 * (sizeof(Word) - 1 - i)));
        }
    } else {
        if constexpr (std::endian::native == std::endian::little) {
            word = std::byteswap(word);
        }
        std::memcpy(to, &word, sizeof(word));
    }
}

} // namespace detail

template <unsigned Offset, unsigned Width>
struct bit_range {
    static_assert(Width >= 1 && Width <= 64);

    static constexpr unsigned word_bits  = detail::word_bits_for(Offset, Width);
    static constexpr unsigned word_start = detail::word_start_for(Offset, Width);
    static_assert(Offset + Width <= word_start + word_bits, "a field that no 64-bit word holds");

    using word = detail::word_of<word_bits>;

    static constexpr std::size_t first_byte = word_start / 8;
    static constexpr unsigned shift         = word_start + word_bits - Offset - Width;
    static constexpr word mask              = static_cast<word>(~std::uint64_t{0} >> (64 - Width));

    static constexpr std::uint64_t load(const std::byte* base)
    {
        const auto w = detail::load_big_endian<word>(base + first_byte);
        return (std::uint64_t{w} >> shift) & mask;
    }

    // `value` must fit; view.h checks it.
    static constexpr void store(std::byte* base, std::uint64_t value)
    {
        auto w = static_cast<word>(value << shift);
        if constexpr (Width != word_bits) {
            const auto kept = detail::load_big_endian<word>(base + first_byte);
            w               = static_cast<word>(w | (kept & ~(std::uint64_t{mask} << shift)));
        }
        detail::store_big_endian<word>(base + first_byte, w);
    }
};

} // namespace ucxl::prm

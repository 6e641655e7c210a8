// Reads the numbers of wire_encode.h from bytes that may be hostile: any end, any number, none in more bytes than it
// needs.
//
//     wire::reader numbers(bytes);
//     if (std::uint64_t count; numbers.number(count)) { ... }
//
// Lists have 10^5 entries, so short numbers are read as whole words. A loop keeps a reader of its own, which is small.
#pragma once

#include "wire_encode.h"

#include <span>

namespace ucxl::wire
{

// Reads a number of any length. Returns where it ends, or nullptr.
inline const std::byte* read_any_number(const std::byte* at, const std::byte* end, std::uint64_t& value)
{
    value = 0;
    for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
        const auto next = std::to_integer<std::uint8_t>(*at++);
        if (shift == 63 && next > 1) {
            return nullptr;
        }
        value |= std::uint64_t{next & 0x7fu} << shift;
        if (next < 0x80) {
            return next != 0 || shift == 0 ? at : nullptr;
        }
    }
    return nullptr;
}

class reader
{
public:
    explicit reader(std::span<const std::byte> from) : _at(from.data()), _end(from.data() + from.size()) {}

    std::size_t left() const { return static_cast<std::size_t>(_end - _at); }
    std::uint8_t byte() { return std::to_integer<std::uint8_t>(*_at++); } // of those left

    bool number(std::uint64_t& value)
    {
        if (left() >= 8) {
            const std::uint64_t word = word_at(_at);
            const std::uint64_t ends = ~word & goes_on;
            if (ends != 0) {
                return short_number(word, ends, value);
            }
        }
        const std::byte* end = read_any_number(_at, _end, value);
        _at                  = end == nullptr ? _end : end;
        return end != nullptr;
    }

    // The numbers of an entry, as put_place() writes them.
    [[gnu::always_inline]] bool place(std::uint64_t& source, std::uint64_t& back, std::uint64_t& offset)
    {
        if (left() >= 8) {
            const std::uint64_t word = word_at(_at);
            const std::uint64_t ends = ~word >> 16 & goes_on >> 16;
            if ((word & 0x8080) == 0 && ends != 0) {
                source = word & 0x7f;
                back   = word >> 8 & 0x7f;
                _at += 2;
                return short_number(word >> 16, ends, offset);
            }
        }
        return number(source) && number(back) && number(offset);
    }

private:
    // The number at the lowest bytes of the word. `ends` has the highest bits of those bytes that end a number.
    bool short_number(std::uint64_t word, std::uint64_t ends, std::uint64_t& value)
    {
        const std::uint64_t end  = ends & -ends; // of the last byte
        const std::uint64_t last = end - (end >> 7);
        value                    = gathered(word & ((end << 1) - 1) & ~goes_on);
        _at += static_cast<unsigned>(std::countr_zero(end)) / 8 + 1;
        return end == 0x80 || (word & last) != 0; // a last byte of 0 is one too many
    }

    const std::byte* _at;
    const std::byte* _end;
};

} // namespace ucxl::wire

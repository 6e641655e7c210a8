#include "store_instruction.h"

namespace ucxl::softhca
{
namespace
{

constexpr std::uint32_t bits(std::uint32_t code, unsigned low, unsigned count)
{
    return (code >> low) & ((1U << count) - 1);
}

constexpr std::int32_t signed_bits(std::uint32_t code, unsigned low, unsigned count)
{
    return static_cast<std::int32_t>(code << (32 - low - count)) >> (32 - count);
}

store_instruction make(std::uint32_t code, bool vector, unsigned width)
{
    const auto number = static_cast<std::uint8_t>(bits(code, 0, 5));
    return {.length       = 4,
            .width        = static_cast<std::uint8_t>(width),
            .source       = vector         ? store_source::vector
                            : number == 31 ? store_source::zero
                                           : store_source::general,
            .number       = number,
            .byte_swapped = false,
            .immediate    = 0,
            .written_back = no_register,
            .moved_by     = 0,
            .second       = no_register};
}

void write_back(store_instruction& store, std::uint32_t code, std::int32_t by)
{
    store.written_back = static_cast<std::uint8_t>(bits(code, 5, 5));
    store.moved_by     = by;
}

std::optional<store_instruction> single(std::uint32_t code)
{
    const bool vector     = bits(code, 26, 1) != 0;
    const unsigned size   = bits(code, 30, 2);
    const unsigned opcode = bits(code, 22, 2);
    const bool quad       = vector && opcode == 2 && size == 0;
    if (opcode != 0 && !quad) {
        return std::nullopt; // a load or a prefetch
    }
    auto store = make(code, vector, quad ? 16U : 1U << size);
    if (bits(code, 24, 2) == 1) { // unsigned offset
        return store;
    }
    if (bits(code, 24, 2) != 0) {
        return std::nullopt;
    }
    const unsigned mode = bits(code, 10, 2);
    if (bits(code, 21, 1) != 0) {
        return mode == 2 ? std::optional(store) : std::nullopt; // register offset; else atomics
    }
    if (mode == 1 || mode == 3) { // post- and pre-indexed
        write_back(store, code, signed_bits(code, 12, 9));
    }
    return store;
}

std::optional<store_instruction> pair(std::uint32_t code)
{
    const bool vector   = bits(code, 26, 1) != 0;
    const unsigned size = bits(code, 30, 2);
    if (bits(code, 22, 1) != 0 || size == 3 || (!vector && size == 1)) {
        return std::nullopt;
    }
    const unsigned each = vector ? 4U << size : size == 2 ? 8U : 4U;
    auto store          = make(code, vector, 2 * each);
    store.second        = static_cast<std::uint8_t>(bits(code, 10, 5));
    const unsigned mode = bits(code, 23, 3);
    if (mode == 1 || mode == 3) {
        write_back(store, code, signed_bits(code, 15, 7) * static_cast<std::int32_t>(each));
    } else if (mode > 3) {
        return std::nullopt;
    }
    return store;
}

} // namespace

std::optional<store_instruction> decode_store_aarch64(std::uint32_t code)
{
    if (bits(code, 27, 3) == 7) {
        return single(code);
    }
    if (bits(code, 27, 3) == 5) {
        return pair(code);
    }
    if ((code & 0x3ffffc00) == 0x089ffc00) { // store-release
        return make(code, false, 1U << bits(code, 30, 2));
    }
    return std::nullopt;
}

} // namespace ucxl::softhca

#include "store_instruction.h"

#include <bit>

namespace ucxl::softhca
{
namespace
{

std::optional<std::uint64_t> source_value(const store_instruction& store, std::uint8_t number,
                                          const stored_registers& registers)
{
    const std::size_t low = std::size_t{number} * 2;
    switch (store.source) {
    case store_source::immediate:
        return store.immediate;
    case store_source::zero:
        return 0;
    case store_source::general:
    case store_source::general_high:
        if (number >= registers.general.size()) {
            return std::nullopt;
        }
        return store.source == store_source::general ? registers.general[number] : registers.general[number] >> 8;
    case store_source::vector:
    case store_source::vector_high:
        if (low + 1 >= registers.vector.size()) {
            return std::nullopt;
        }
        return registers.vector[low + (store.source == store_source::vector_high ? 1 : 0)];
    }
    return std::nullopt;
}

std::uint64_t low_bytes(std::uint64_t value, unsigned bytes)
{
    return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

} // namespace

std::optional<std::uint64_t> stored_value(const store_instruction& store, const stored_registers& registers)
{
    const auto first = source_value(store, store.number, registers);
    if (!first) {
        return std::nullopt;
    }
    const bool narrow_pair = store.second != no_register && store.width == 8;
    if (narrow_pair) {
        store_instruction other = store;
        other.source            = store.second == 31 && store.source != store_source::vector ? store_source::zero
                                  : store.source == store_source::vector                     ? store_source::vector
                                                                                             : store_source::general;
        const auto second       = source_value(other, store.second, registers);
        if (!second) {
            return std::nullopt;
        }
        return low_bytes(*first, 4) | *second << 32;
    }
    if (store.byte_swapped) {
        return std::byteswap(*first) >> (64 - 8 * store.width);
    }
    return low_bytes(*first, store.width);
}

} // namespace ucxl::softhca

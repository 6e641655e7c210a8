// The sizes of queues in the program's memory. They are powers of two.
#pragma once

#include <bit>
#include <cstdint>

namespace ucxl::softhca
{

inline constexpr std::uint64_t doorbell_record_bytes = 8;

constexpr unsigned log2_of(std::uint64_t power)
{
    return static_cast<unsigned>(std::countr_zero(power));
}

} // namespace ucxl::softhca

// The times that a requester waits before a retry, by the InfiniBand specification.
#pragma once

#include <array>
#include <cstdint>

namespace ucxl::softhca
{

inline constexpr std::uint64_t never_ns = UINT64_MAX;

// An rnr_retry of 7 means no limit.
inline constexpr std::uint8_t endless_rnr_retry = 7;

// 4.096 us * 2^code. Code 0 is no timeout: a lost message is never sent again.
constexpr std::uint64_t ack_timeout_ns(std::uint8_t code)
{
    return (code & 31) == 0 ? never_ns : std::uint64_t{4096} << (code & 31);
}

// The encoded timers of an RNR NAK.
constexpr std::uint64_t rnr_timer_ns(std::uint8_t code)
{
    constexpr std::array<std::uint32_t, 32> hundredths_of_ms{
        65536, 1,   2,   3,   4,    6,    8,    12,   16,   24,   32,   48,    64,    96,    128,   192,
        256,   384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
    return std::uint64_t{hundredths_of_ms[code & 31]} * 10'000;
}

} // namespace ucxl::softhca

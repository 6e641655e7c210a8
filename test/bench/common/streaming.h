// Copies past the cache, by the widest stores this machine has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ucxl::bench
{

// `to` and `length` are multiples of 64.
inline void stream(std::byte* to, const std::byte* from, std::size_t length)
{
#if defined(__AVX512F__)
    for (std::size_t i = 0; i < length; i += 64) {
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to + i), _mm512_loadu_si512(from + i));
    }
#elif defined(__x86_64__)
    for (std::size_t i = 0; i < length; i += 16) {
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
#else
    std::memcpy(to, from, length);
#endif
}

// After the last of them.
inline void stream_fence()
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

// The limit of what memory takes: any length.
[[gnu::noinline]] inline void copy_streaming(std::byte* to, const std::byte* from, std::size_t length)
{
    const std::size_t head = length < 64 ? length : (0 - reinterpret_cast<std::uintptr_t>(to)) % 64;
    std::memcpy(to, from, head);
    const std::size_t middle = (length - head) / 64 * 64;
    stream(to + head, from + head, middle);
    std::memcpy(to + head + middle, from + head + middle, length - head - middle);
    stream_fence();
}

} // namespace ucxl::bench

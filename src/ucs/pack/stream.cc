#include "stream.h"

#include "transfer.h"

#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ucxl
{

namespace
{

constexpr std::size_t line          = 64;
constexpr std::size_t buffer_length = 16384;

// `to` and `length` are multiples of a line.
void stream_lines(std::byte* to, const std::byte* from, std::size_t length)
{
#ifdef __x86_64__
    for (std::size_t i = 0; i < length; i += line) {
#pragma GCC unroll 4
        for (std::size_t k = i; k < i + line; k += sizeof(__m128i)) {
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
        }
    }
#else
    std::memcpy(to, from, length);
#endif
}

void finish_streaming()
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

// Bytes to the next line.
std::size_t to_line(const std::byte* at)
{
    return (0 - reinterpret_cast<std::uintptr_t>(at)) % line;
}

} // namespace

bool can_gather_streaming(const compiled_program& program)
{
    return !program.steps.empty() && std::ranges::none_of(program.steps, [](const step& what) {
        return what.is_panel || what.kind == step_kind::zip;
    });
}

void gather_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                      std::byte* to)
{
    alignas(line) std::array<std::byte, buffer_length> buffer;
    program_cursor at(program, offset);
    const std::uint64_t head = std::min<std::uint64_t>(to_line(to), length);
    transfer<direction::gather>(at, bases, head, to);
    to += head;
    for (length -= head; length >= line;) {
        const std::uint64_t size = std::min<std::uint64_t>(length / line * line, buffer_length);
        transfer<direction::gather>(at, bases, size, buffer.data());
        stream_lines(to, buffer.data(), size);
        to += size;
        length -= size;
    }
    transfer<direction::gather>(at, bases, length, to);
    finish_streaming();
}

} // namespace ucxl

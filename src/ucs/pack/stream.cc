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
// Of longer blocks that are not whole lines the two cut ones count little.
constexpr std::uint64_t min_cut_block = 512;

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

void stream_block(std::byte* to, const std::byte* from, std::size_t length)
{
    const std::size_t head = std::min(to_line(to), length), lines = (length - head) / line * line;
    std::memcpy(to, from, head);
    stream_lines(to + head, from + head, lines);
    std::memcpy(to + head + lines, from + head + lines, length - head - lines);
}

const step& only_leaf(const compiled_program& program)
{
    return program.steps[program.root.child];
}

} // namespace

bool can_gather_streaming(const compiled_program& program)
{
    return !program.steps.empty() && std::ranges::none_of(program.steps, [](const step& what) {
        return what.is_panel || what.kind == step_kind::zip;
    });
}

bool can_scatter_streaming(const compiled_program& program)
{
    if (program.steps.empty() || only_leaf(program).kind != step_kind::run || only_leaf(program).is_panel) {
        return false;
    }
    const block_run& run = only_leaf(program).run;
    const auto are_lines = [](std::int64_t bytes) { return bytes % static_cast<std::int64_t>(line) == 0; };
    const bool whole     = run.length % line == 0 && are_lines(run.stride) && are_lines(run.outer_stride);
    return whole || run.length >= min_cut_block;
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

void scatter_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                       const std::byte* from)
{
    const block_run& run = only_leaf(program).run;
    std::uint64_t block = offset / run.length, row = block / run.count;
    std::uint64_t into = offset - block * run.length;
    block -= row * run.count;
    std::byte* memory = bases[program.root.source] + program.root.offset;
    while (length > 0) {
        std::byte* to = memory + static_cast<std::int64_t>(row) * run.outer_stride +
                        static_cast<std::int64_t>(block) * run.stride + static_cast<std::int64_t>(into);
        const std::uint64_t size = std::min(length, run.length - into);
        stream_block(to, from, size);
        from += size;
        length -= size;
        into = 0;
        if (++block == run.count) {
            block = 0;
            ++row;
        }
    }
    finish_streaming();
}

} // namespace ucxl

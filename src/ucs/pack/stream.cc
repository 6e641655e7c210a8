#include "stream.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ucxl
{

namespace
{

constexpr std::int64_t line = 64;
// Measured: shorter blocks are slower past the caches, unless they are whole lines. Gathers have the buffer to compare
// with.
constexpr std::uint64_t min_scattered_block = 512;
constexpr std::uint64_t min_gathered_block  = 1024;
constexpr std::size_t buffer_length         = 16384;

// Of a table: on average.
bool has_blocks_of(const step& leaf, std::uint64_t length)
{
    return (leaf.kind == step_kind::run && !leaf.is_panel && leaf.run.length >= length) ||
           (leaf.kind == step_kind::table && leaf.packed_length >= leaf.size * length);
}

// Of a run, if the first one begins at a line.
bool has_lines_as_blocks(const step& leaf)
{
    const block_run& run = leaf.run;
    return leaf.kind == step_kind::run && !leaf.is_panel && run.length % line == 0 && run.stride % line == 0 &&
           run.outer_stride % line == 0;
}

bool is_at_line(const std::byte* memory)
{
    return reinterpret_cast<std::uintptr_t>(memory) % line == 0;
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
    return std::ranges::any_of(program.steps, [](const step& what) {
        return has_blocks_of(what, min_scattered_block) || has_lines_as_blocks(what);
    });
}

bool has_long_blocks(const step& table)
{
    return has_blocks_of(table, min_scattered_block);
}

const block_kernels& kernels_to_gather_streaming(const step& run)
{
    return has_blocks_of(run, min_gathered_block) ? best_kernels().streaming->blocks : *run.kernels;
}

const block_kernels& kernels_to_scatter_streaming(const step& run, const std::byte* memory)
{
    if (has_lines_as_blocks(run) && is_at_line(memory)) {
        return best_kernels().streaming->lines;
    }
    return has_blocks_of(run, min_scattered_block) ? best_kernels().streaming->blocks : *run.kernels;
}

const block_kernels& kernels_to_copy_streaming(const block_kernels& ordinary, const std::byte* to, std::int64_t stride,
                                               std::uint64_t length)
{
    if (length % line == 0 && stride % line == 0 && is_at_line(to)) {
        return best_kernels().streaming->lines;
    }
    return length >= min_scattered_block ? best_kernels().streaming->blocks : ordinary;
}

void gather_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                      std::byte* to)
{
    alignas(line) std::array<std::byte, buffer_length> buffer;
    program_cursor at(program, offset);
    while (length > 0) {
        std::uint64_t size = length;
        if (has_blocks_of(at.leaf(), min_gathered_block)) {
            size = std::min(size, at.left());
            transfer<direction::gather>(at, bases, size, to, caches::passed);
        } else {
            size = std::min<std::uint64_t>(size, buffer_length);
            transfer<direction::gather>(at, bases, size, buffer.data());
            best_kernels().streaming->copy(to, buffer.data(), size);
        }
        to += size;
        length -= size;
    }
    finish_streaming();
}

void scatter_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                       const std::byte* from)
{
    program_cursor at(program, offset);
    transfer<direction::scatter>(at, bases, length, from, caches::passed);
    finish_streaming();
}

void finish_streaming()
{
#ifdef __x86_64__
    _mm_sfence();
#endif
}

} // namespace ucxl

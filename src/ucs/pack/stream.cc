#include "stream.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ucxl
{

namespace
{

constexpr std::int64_t line = 64;
// Measured: shorter blocks are slower past the caches, unless they are whole lines. Gathers compare with the way
// through the buffer.
constexpr std::uint64_t min_scattered_block = 512;
constexpr std::uint64_t min_gathered_block  = 1024;
constexpr std::size_t buffer_length         = 16384;

bool has_blocks_of(const step& leaf, std::uint64_t length)
{
    const auto* const run   = as<run_step>(leaf);
    const auto* const table = as<table_step>(leaf);
    return (run != nullptr && run->blocks.length >= length) || (table != nullptr && table->has_blocks_of(length));
}

// Only if the first block begins at a line.
bool is_of_whole_lines(const block_run& run)
{
    return run.length % line == 0 && run.stride % line == 0 && run.outer_stride % line == 0;
}

} // namespace

bool can_gather_streaming(const compiled_program& program)
{
    return !program.steps.empty() && std::ranges::none_of(program.steps, [](const step& step) {
        return is_panel(step) || as<zip_step>(step) != nullptr;
    });
}

bool can_scatter_streaming(const compiled_program& program)
{
    return std::ranges::any_of(program.steps, [](const step& step) {
        const auto* const run = as<run_step>(step);
        return has_blocks_of(step, min_scattered_block) || (run != nullptr && is_of_whole_lines(run->blocks));
    });
}

bool can_copy_streaming(const compiled_program& program)
{
    return can_scatter_streaming(program) || std::ranges::any_of(program.steps, [](const step& step) {
               const auto* const zip = as<zip_step>(step);
               return zip != nullptr && zip->is_dense();
           });
}

bool has_long_blocks(const table_step& table)
{
    return table.has_blocks_of(min_scattered_block);
}

const block_kernels& kernels_past_caches(const block_kernels& ordinary, const std::byte* to, const block_run& written)
{
    if (is_of_whole_lines(written) && reinterpret_cast<std::uintptr_t>(to) % line == 0) {
        return best_kernels().streaming->lines;
    }
    return written.length >= min_scattered_block ? best_kernels().streaming->blocks : ordinary;
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
            move_range<direction::gather>(at, bases, size, to, caches::passed);
        } else {
            size = std::min<std::uint64_t>(size, buffer_length);
            move_range<direction::gather>(at, bases, size, buffer.data());
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
    move_range<direction::scatter>(at, bases, length, from, caches::passed);
    finish_streaming();
}

void finish_streaming()
{
#ifdef __x86_64__
    _mm_sfence();
#endif
    // aarch64 orders stores past the caches as all other stores.
}

} // namespace ucxl

// Kernels: move blocks of one size between contiguous ("packed") bytes and strided memory, or from strided to strided.
//
// Invariant: a kernel reads and writes exactly the bytes of the blocks it was given, whole blocks only, and none of its pointers
// alias. Everything about sizes that can be known without an address is chosen once, by select_kernels(); a new kernel (a
// blocked transpose, say) is added by letting select_kernels() return it for the shapes it is good at.
//
// Example: the first 100 doubles of a column with 8 KB from row to row:
//     const block_run run{.length = 8, .count = 100, .stride = 8192};
//     select_kernels(run).gather(buffer, column, run);
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucxl
{

// outer_count rows, each of count blocks. Packed order: row by row.
struct block_run {
    std::uint64_t length      = 0; // bytes of a block
    std::uint64_t count       = 1; // blocks of a row
    std::int64_t stride       = 0; // bytes from block to block
    std::uint64_t outer_count = 1;
    std::int64_t outer_stride = 0; // bytes from row to row

    std::uint64_t row_length() const { return length * count; }
    std::uint64_t packed_length() const { return row_length() * outer_count; }
};

struct kernel_set {
    // The run given may have other counts and strides than the one the kernel was selected for, but the same length.
    void (*gather)(std::byte* packed, const std::byte* memory, const block_run& run);
    void (*scatter)(std::byte* memory, const std::byte* packed, const block_run& run);
    // Strides are bytes; one row of `count` blocks.
    void (*move)(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                 std::uint64_t count, std::uint64_t length);
    const char* name; // for people
};

const kernel_set& select_kernels(const block_run& run);

// A block that lies anywhere. Many of them with nothing in common are moved by one loop over a table.
struct table_row {
    std::int64_t offset; // bytes from the base address of the source
    std::uint32_t length;
    std::uint32_t source;
};

inline constexpr std::uint64_t max_row_length = std::uint64_t{1} << 30;

// One base address for all rows (their source is not looked at), or one for each source. Return the end of the packed bytes.
std::byte* gather_table(std::byte* packed, const std::byte* base, const table_row* rows, std::size_t count);
std::byte* gather_table(std::byte* packed, std::byte* const* bases, std::int64_t offset, const table_row* rows,
                        std::size_t count);
const std::byte* scatter_table(std::byte* base, const std::byte* packed, const table_row* rows, std::size_t count);
const std::byte* scatter_table(std::byte* const* bases, std::int64_t offset, const std::byte* packed,
                               const table_row* rows, std::size_t count);

} // namespace ucxl

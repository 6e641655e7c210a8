// Kernels: move blocks of one size between contiguous ("packed") bytes and strided memory, or from strided to strided.
//
// Invariant: a kernel reads and writes exactly the bytes of the blocks it was given, whole blocks only, and none of its
// pointers alias. What can be known without an address is chosen once, when a plan is compiled: the library for the
// CPU, then the kernel for the shape. A new kernel is added by letting kernel_library::blocks return it for the
// shapes it is good at; a new instruction set is one more library.
//
// Example: the first 100 doubles of a column with 8 KB from row to row:
//     const block_run run{.length = 8, .count = 100, .stride = 8192};
//     best_kernels().blocks(run).gather(buffer, column, run);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl
{

inline constexpr std::uint64_t cache_line = 64; // bytes

// How far a stride reaches, in whichever direction.
constexpr std::uint64_t magnitude(std::int64_t stride)
{
    const auto bits = static_cast<std::uint64_t>(stride);
    return stride < 0 ? 0 - bits : bits;
}

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

// Rows that lie beside each other in memory, as the columns of a matrix: block i of a row is at row * row_stride + i *
// stride in memory and at row * pitch + i * length in the packed bytes.
struct block_panel {
    std::uint64_t count; // blocks of a row
    std::int64_t stride;
    std::uint64_t rows;
    std::int64_t row_stride;
    std::int64_t pitch;
};

// In packed order, also where blocks overlap; panels excepted.
struct block_kernels {
    // The run given may have other counts and strides than the one the kernel was selected for, but the same length.
    void (*gather)(std::byte* packed, const std::byte* memory, const block_run& run);
    void (*scatter)(std::byte* memory, const std::byte* packed, const block_run& run);
    // Strides are bytes; one row of `count` blocks.
    void (*move)(std::byte* to, std::int64_t to_stride, const std::byte* from, std::int64_t from_stride,
                 std::uint64_t count, std::uint64_t length);
    // Blocks of different rows that share a cache line are moved together. The blocks must not overlap. Null for
    // lengths at which it does not pay.
    void (*gather_panel)(std::byte* packed, const std::byte* memory, const block_panel& panel);
    void (*scatter_panel)(std::byte* memory, const std::byte* packed, const block_panel& panel);
    const char* name; // for people
};

inline constexpr std::size_t max_group = 3;

// A block of every iteration.
struct block_column {
    std::byte* memory; // of the first iteration
    std::int64_t stride;
};

// Two or three small blocks of every iteration, neighbours in packed order, moved iteration by iteration: stores that
// follow each other in memory are cheaper than a pass for each block. `cycle`: packed bytes from iteration to
// iteration.
struct group_kernels {
    void (*gather)(std::byte* packed, std::int64_t cycle, const block_column* columns, std::uint64_t count);
    void (*scatter)(const block_column* columns, const std::byte* packed, std::int64_t cycle, std::uint64_t count);
};

// A block that lies anywhere. Many of them with nothing in common are moved by one loop over a table.
struct table_row {
    std::int64_t offset; // bytes from the base address of the source
    std::uint32_t length;
    std::uint32_t source;
};

inline constexpr std::uint64_t max_row_length = std::uint64_t{1} << 30;

// With one base address the source of a row is not looked at. Return the end of the packed bytes.
struct table_kernels {
    std::byte* (*gather)(std::byte* packed, const std::byte* base, const table_row* rows, std::size_t count);
    std::byte* (*gather_sources)(std::byte* packed, std::byte* const* bases, std::int64_t offset, const table_row* rows,
                                 std::size_t count);
    const std::byte* (*scatter)(std::byte* base, const std::byte* packed, const table_row* rows, std::size_t count);
    const std::byte* (*scatter_sources)(std::byte* const* bases, std::int64_t offset, const std::byte* packed,
                                        const table_row* rows, std::size_t count);
    // Between two memories in which the rows lie alike.
    void (*move)(std::byte* to, const std::byte* from, const table_row* rows, std::size_t count);
    void (*move_sources)(std::byte* const* to, std::byte* const* from, std::int64_t offset, const table_row* rows,
                         std::size_t count);
};

// Rows of one length and the source of the base address.
struct row_kernels {
    void (*gather)(std::byte* packed, const std::byte* base, const table_row* rows, std::size_t count);
    void (*scatter)(std::byte* base, const std::byte* packed, const table_row* rows, std::size_t count);
    void (*move)(std::byte* to, const std::byte* from, const table_row* rows, std::size_t count);
};

// Where the words of 4 bytes of some iterations lie, in packed order: word i at memory word at[i] of the first
// iteration, whose lowest one is 0.
struct word_map {
    static constexpr std::size_t max_words = 16, max_memory_words = 32, word = 4;

    std::array<std::uint8_t, max_words> at{};
    std::uint32_t words      = 0; // of one iteration
    std::uint32_t iterations = 1;

    // As many iterations as the map can hold. `stride` is a positive multiple of a word.
    void repeat(std::int64_t stride);
};

// `count` iterations, each `stride` bytes behind the one before: a positive multiple of a word.
struct permute_kernels {
    void (*gather)(std::byte* packed, const std::byte* memory, std::int64_t stride, std::uint64_t count,
                   const word_map& map);
    void (*scatter)(std::byte* memory, const std::byte* packed, std::int64_t stride, std::uint64_t count,
                    const word_map& map);
    // Between two memories in which the words lie alike: nothing is permuted.
    void (*move)(std::byte* to, const std::byte* from, std::int64_t stride, std::uint64_t count, const word_map& map);
};

// They write past the caches. Other threads see it after finish_streaming() of stream.h.
struct streaming_kernels {
    block_kernels lines;  // the blocks written, their strides and their length are whole cache lines of 64 bytes
    block_kernels blocks; // of any length
    table_kernels tables;
    void (*copy)(std::byte* to, const std::byte* from, std::size_t length);
};

// All kernels for one instruction set.
struct kernel_library {
    const char* name;
    const block_kernels& (*blocks)(const block_run& run);
    // Null if there is none for these lengths.
    const group_kernels* (*group)(std::span<const std::uint64_t> lengths);
    table_kernels tables;
    // Null if there is none for this length.
    const row_kernels* (*rows)(std::uint64_t length);
    void (*copy)(std::byte* to, const std::byte* from, std::size_t length); // any length
    const streaming_kernels* streaming;
    // Null if there is none for these words.
    const permute_kernels* (*permute)(const word_map& map);
};

// What this CPU can run, slowest first; never empty.
std::span<const kernel_library* const> usable_kernels();
inline const kernel_library& best_kernels()
{
    return *usable_kernels().back();
}

} // namespace ucxl

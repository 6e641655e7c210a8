#include "kernels.h"

#include "copy_block.h"

#include <array>
#include <utility>

namespace ucxl
{

namespace
{

constexpr std::size_t max_fixed   = 64;  // every size up to here has kernels of its own
constexpr std::size_t max_stepped = 512; // from here on a call of memcpy costs less than what it moves
constexpr std::size_t step        = 32;

// How one block of the size is copied; `length` is used by those kinds that do not know it.
template <std::size_t size>
struct fixed_block {
    UCXL_INLINE static std::size_t length_of(std::size_t) { return size; }
    UCXL_INLINE static void copy(std::byte* __restrict to, const std::byte* __restrict from, std::size_t)
    {
        copy_fixed<size>(to, from);
    }
};

template <std::size_t steps>
struct stepped_block {
    UCXL_INLINE static std::size_t length_of(std::size_t length) { return length; }
    UCXL_INLINE static void copy(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
    {
        copy_steps<step, steps>(to, from, length);
    }
};

struct large_block {
    UCXL_INLINE static std::size_t length_of(std::size_t length) { return length; }
    UCXL_INLINE static void copy(std::byte* __restrict to, const std::byte* __restrict from, std::size_t length)
    {
        std::memcpy(to, from, length);
    }
};

template <typename block>
void gather(std::byte* __restrict packed, const std::byte* __restrict memory, const block_run& run)
{
    const std::size_t length  = block::length_of(run.length);
    const std::int64_t stride = run.stride;
    for (std::uint64_t row = 0; row < run.outer_count; ++row) {
        const std::byte* from = memory + static_cast<std::int64_t>(row) * run.outer_stride;
#pragma GCC unroll 4
        for (std::uint64_t left = run.count; left > 0; --left) {
            block::copy(packed, from, length);
            packed += length;
            from += stride;
        }
    }
}

template <typename block>
void scatter(std::byte* __restrict memory, const std::byte* __restrict packed, const block_run& run)
{
    const std::size_t length  = block::length_of(run.length);
    const std::int64_t stride = run.stride;
    for (std::uint64_t row = 0; row < run.outer_count; ++row) {
        std::byte* to = memory + static_cast<std::int64_t>(row) * run.outer_stride;
#pragma GCC unroll 4
        for (std::uint64_t left = run.count; left > 0; --left) {
            block::copy(to, packed, length);
            packed += length;
            to += stride;
        }
    }
}

template <typename block>
void move(std::byte* __restrict to, std::int64_t to_stride, const std::byte* __restrict from, std::int64_t from_stride,
          std::uint64_t count, std::uint64_t length)
{
#pragma GCC unroll 4
    for (; count > 0; --count) {
        block::copy(to, from, length);
        to += to_stride;
        from += from_stride;
    }
}

template <typename block>
constexpr kernel_set kernels_of(const char* name)
{
    return {gather<block>, scatter<block>, move<block>, name};
}

// "copy<1>", "copy<2>", ... in static storage
template <std::size_t size>
constexpr auto fixed_name = [] {
    std::array<char, 10> name{"copy<"};
    std::size_t at = 5;
    if (size >= 10) {
        name[at++] = static_cast<char>('0' + size / 10);
    }
    name[at++] = static_cast<char>('0' + size % 10);
    name[at]   = '>';
    return name;
}();

template <std::size_t... sizes>
constexpr auto fixed_kernels(std::index_sequence<sizes...>)
{
    return std::array<kernel_set, sizeof...(sizes)>{
        kernels_of<fixed_block<sizes + 1>>(fixed_name<sizes + 1>.data())...};
}

template <std::size_t... steps>
constexpr auto stepped_kernels(std::index_sequence<steps...>)
{
    return std::array<kernel_set, sizeof...(steps)>{kernels_of<stepped_block<steps + 1>>("vector")...};
}

constexpr auto fixed   = fixed_kernels(std::make_index_sequence<max_fixed>());
constexpr auto stepped = stepped_kernels(std::make_index_sequence<max_stepped / step>());
constexpr auto large   = kernels_of<large_block>("memcpy");

} // namespace

const kernel_set& select_kernels(const block_run& run)
{
    if (run.length <= max_fixed) {
        return fixed[run.length - 1];
    }
    if (run.length <= max_stepped) {
        return stepped[(run.length + step - 1) / step - 1];
    }
    return large;
}

std::byte* gather_table(std::byte* packed, const std::byte* base, const table_row* rows, std::size_t count)
{
    for (const table_row* row = rows; row != rows + count; ++row) {
        copy_any(packed, base + row->offset, row->length);
        packed += row->length;
    }
    return packed;
}

std::byte* gather_table(std::byte* packed, std::byte* const* bases, std::int64_t offset, const table_row* rows,
                        std::size_t count)
{
    for (const table_row* row = rows; row != rows + count; ++row) {
        copy_any(packed, bases[row->source] + (offset + row->offset), row->length);
        packed += row->length;
    }
    return packed;
}

const std::byte* scatter_table(std::byte* base, const std::byte* packed, const table_row* rows, std::size_t count)
{
    for (const table_row* row = rows; row != rows + count; ++row) {
        copy_any(base + row->offset, packed, row->length);
        packed += row->length;
    }
    return packed;
}

const std::byte* scatter_table(std::byte* const* bases, std::int64_t offset, const std::byte* packed,
                               const table_row* rows, std::size_t count)
{
    for (const table_row* row = rows; row != rows + count; ++row) {
        copy_any(bases[row->source] + (offset + row->offset), packed, row->length);
        packed += row->length;
    }
    return packed;
}

} // namespace ucxl

#include "kernel_cases.h"

#include "support/must.h"

#include "ucs/layout/build.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

namespace ucxl::bench
{

namespace
{

template <std::size_t block>
[[gnu::noinline]] void pack_vector(std::byte* __restrict to, const std::byte* __restrict from, std::size_t count,
                                   std::size_t stride)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(to + i * block, from + i * stride, block);
    }
}

template <std::size_t block>
[[gnu::noinline]] void unpack_vector(std::byte* __restrict to, const std::byte* __restrict from, std::size_t count,
                                     std::size_t stride)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(to + i * stride, from + i * block, block);
    }
}

template <std::size_t block>
kernel_case vector_case(std::size_t payload, std::size_t stride, std::string name)
{
    const std::size_t count = std::max<std::size_t>(payload / block, 1);
    const dim blocks[]      = {{count, static_cast<std::int64_t>(stride)}};
    return {std::move(name),
            test::must(make_strided({.length = block}, blocks)),
            count * stride,
            {0},
            [=](std::byte* to, const std::byte* from) { pack_vector<block>(to, from, count, stride); },
            [=](std::byte* to, const std::byte* from) { unpack_vector<block>(to, from, count, stride); }};
}

template <std::size_t block>
kernel_case vector_case(std::size_t payload, std::size_t stride)
{
    return vector_case<block>(payload, stride, std::to_string(block) + " of " + std::to_string(stride));
}

[[gnu::noinline]] void pack_columns(std::byte* __restrict to, const std::byte* __restrict from, std::size_t columns,
                                    std::size_t rows, std::size_t stride)
{
    for (std::size_t column = 0; column < columns; ++column) {
        for (std::size_t row = 0; row < rows; ++row, to += 8) {
            std::memcpy(to, from + column * 8 + row * stride, 8);
        }
    }
}

[[gnu::noinline]] void unpack_columns(std::byte* __restrict to, const std::byte* __restrict from, std::size_t columns,
                                      std::size_t rows, std::size_t stride)
{
    for (std::size_t column = 0; column < columns; ++column) {
        for (std::size_t row = 0; row < rows; ++row, from += 8) {
            std::memcpy(to + column * 8 + row * stride, from, 8);
        }
    }
}

// Columns of a matrix of doubles, one after the other; as many rows as fit into 64 MB.
kernel_case column_case(std::size_t payload, std::size_t columns)
{
    constexpr std::size_t stride = 8192, max_rows = 8192;
    const std::size_t rows = std::clamp<std::size_t>(payload / 8 / columns, 1, max_rows);
    const dim places[]     = {{columns, 8}, {rows, stride}};
    return {columns == 1 ? "matrix column" : std::to_string(columns) + " matrix columns",
            test::must(make_strided({.length = 8}, places)),
            rows * stride,
            {0},
            [=](std::byte* to, const std::byte* from) { pack_columns(to, from, columns, rows, stride); },
            [=](std::byte* to, const std::byte* from) { unpack_columns(to, from, columns, rows, stride); }};
}

// An array of vertices, packed as three arrays: positions, colours, texture coordinates.
kernel_case vertices_case(std::size_t payload)
{
    const std::size_t count = std::max<std::size_t>(payload / 32, 1);
    const dim records[]     = {{count, 32}};
    const auto three        = test::must(make_strided({.length = 12}, records));
    const auto two          = test::must(make_strided({.length = 8}, records));
    const iov_part parts[]  = {{0, 0, {.nested = three}}, {0, 12, {.nested = three}}, {0, 24, {.nested = two}}};
    return {"vertices to arrays",
            test::must(make_iov(parts)),
            count * 32,
            {0},
            [=](std::byte* to, const std::byte* from) {
                pack_vector<12>(to, from, count, 32);
                pack_vector<12>(to + 12 * count, from + 12, count, 32);
                pack_vector<8>(to + 24 * count, from + 24, count, 32);
            },
            [=](std::byte* to, const std::byte* from) {
                unpack_vector<12>(to, from, count, 32);
                unpack_vector<12>(to + 12, from + 12 * count, count, 32);
                unpack_vector<8>(to + 24, from + 24 * count, count, 32);
            }};
}

[[gnu::noinline]] void pack_332(std::byte* __restrict to, const std::byte* __restrict a, const std::byte* __restrict b,
                                const std::byte* __restrict c, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(to + i * 32, a + i * 12, 12);
        std::memcpy(to + i * 32 + 12, b + i * 12, 12);
        std::memcpy(to + i * 32 + 24, c + i * 8, 8);
    }
}

[[gnu::noinline]] void unpack_332(std::byte* __restrict a, std::byte* __restrict b, std::byte* __restrict c,
                                  const std::byte* __restrict from, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(a + i * 12, from + i * 32, 12);
        std::memcpy(b + i * 12, from + i * 32 + 12, 12);
        std::memcpy(c + i * 8, from + i * 32 + 24, 8);
    }
}

// Three arrays, packed as vertices.
kernel_case interleaved_case(std::size_t payload)
{
    const std::size_t count = std::max<std::size_t>(payload / 32, 1);
    const dim dims[]        = {{count * 3, 4}, {count * 3, 4}, {count * 2, 4}};
    const std::span<const dim> all(dims);
    const interleaved_part parts[] = {{0, 0, {.length = 4}, 3, all.subspan(0, 1)},
                                      {1, 0, {.length = 4}, 3, all.subspan(1, 1)},
                                      {2, 0, {.length = 4}, 2, all.subspan(2, 1)}};
    const std::size_t b = 12 * count, c = 24 * count;
    return {"arrays interleaved 3:3:2",
            test::must(make_interleaved(parts)),
            count * 32,
            {0, b, c},
            [=](std::byte* to, const std::byte* from) { pack_332(to, from, from + b, from + c, count); },
            [=](std::byte* to, const std::byte* from) { unpack_332(to, to + b, to + c, from, count); }};
}

[[gnu::noinline]] void pack_structs(std::byte* __restrict to, const std::byte* __restrict from, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < 2; ++k, to += 28) {
            const std::byte* at = from + i * 192 + k * 48;
            std::memcpy(to, at, 8);
            std::memcpy(to + 8, at + 16, 12);
            std::memcpy(to + 20, at + 32, 8);
        }
    }
}

[[gnu::noinline]] void unpack_structs(std::byte* __restrict to, const std::byte* __restrict from, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < 2; ++k, from += 28) {
            std::byte* at = to + i * 192 + k * 48;
            std::memcpy(at, from, 8);
            std::memcpy(at + 16, from + 8, 12);
            std::memcpy(at + 32, from + 20, 8);
        }
    }
}

// Two of four structs of 48 bytes, of each 28 bytes in three fields.
kernel_case nested_case(std::size_t payload)
{
    const std::size_t count = std::max<std::size_t>(payload / 56, 1);
    const iov_part fields[] = {{0, 0, {.length = 8}}, {0, 16, {.length = 12}}, {0, 32, {.length = 8}}};
    const dim structs[]     = {{count, 192}, {2, 48}};
    return {"vector of struct",
            test::must(make_strided({.nested = test::must(make_iov(fields))}, structs)),
            count * 192,
            {0},
            [=](std::byte* to, const std::byte* from) { pack_structs(to, from, count); },
            [=](std::byte* to, const std::byte* from) { unpack_structs(to, from, count); }};
}

struct list_block {
    std::size_t offset;
    std::size_t length;
};

// Lengths are multiples of 8, which is what this loop knows and the layout does not say.
[[gnu::noinline]] void pack_list(std::byte* __restrict to, const std::byte* __restrict from, const list_block* list,
                                 std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        const std::byte* at = from + list[i].offset;
        std::size_t done    = 0;
        for (; done + 32 <= list[i].length; done += 32) {
            std::memcpy(to + done, at + done, 32);
        }
        for (; done < list[i].length; done += 8) {
            std::memcpy(to + done, at + done, 8);
        }
        to += list[i].length;
    }
}

[[gnu::noinline]] void unpack_list(std::byte* __restrict to, const std::byte* __restrict from, const list_block* list,
                                   std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        std::byte* at    = to + list[i].offset;
        std::size_t done = 0;
        for (; done + 32 <= list[i].length; done += 32) {
            std::memcpy(at + done, from + done, 32);
        }
        for (; done < list[i].length; done += 8) {
            std::memcpy(at + done, from + done, 8);
        }
        from += list[i].length;
    }
}

// Blocks of 8 to 256 bytes with gaps of the same lengths.
kernel_case list_case(std::size_t payload, bool shuffled)
{
    std::mt19937_64 random(1); // the same case in every run
    auto list          = std::make_shared<std::vector<list_block>>();
    std::size_t offset = 0;
    for (std::size_t left = std::max<std::size_t>(payload / 132, 1); left > 0; --left) {
        const std::size_t length = 8 * (1 + random() % 32);
        list->push_back({offset, length});
        offset += length + 8 * (1 + random() % 32);
    }
    if (shuffled) {
        std::ranges::shuffle(*list, random);
    }
    std::vector<iov_part> parts;
    for (const list_block& block : *list) {
        parts.push_back({0, static_cast<std::int64_t>(block.offset), {.length = block.length}});
    }
    return {std::string("list of ") + std::to_string(list->size()) + (shuffled ? ", shuffled" : ""),
            test::must(make_iov(parts)),
            offset,
            {0},
            [=](std::byte* to, const std::byte* from) { pack_list(to, from, list->data(), list->size()); },
            [=](std::byte* to, const std::byte* from) { unpack_list(to, from, list->data(), list->size()); }};
}

} // namespace

std::vector<kernel_case> kernel_cases(std::size_t payload)
{
    return {vector_case<8>(payload, 32),
            vector_case<12>(payload, 32),
            vector_case<16>(payload, 64),
            vector_case<32>(payload, 64),
            vector_case<64>(payload, 128),
            vector_case<100>(payload, 160),
            vector_case<256>(payload, 512),
            vector_case<4096>(payload, 8192),
            vector_case<2048>(payload, 32768, "tile of 256 doubles"),
            column_case(payload, 1),
            column_case(payload, 512),
            vertices_case(payload),
            interleaved_case(payload),
            nested_case(payload),
            list_case(payload, false),
            list_case(payload, true)};
}

} // namespace ucxl::bench

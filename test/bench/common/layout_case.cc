#include "layout_case.h"

#include "hand_loops.h"

#include <algorithm>
#include <random>

namespace ucxl::bench
{

namespace
{

constexpr std::size_t kilo = 1024, mega = 1024 * kilo, line = 64, page = 4096;

std::size_t whole(std::size_t value, std::size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

template <typename Loops>
hand_loop loops_of(const Loops& loops)
{
    return {[=](std::byte* to, const std::byte* from) { loops.pack(to, from); },
            [=](std::byte* to, const std::byte* from) { loops.unpack(to, from); }};
}

template <std::size_t known>
hand_loop loops_of(const two_loops& loops)
{
    return {[=](std::byte* to, const std::byte* from) { loops.pack<known>(to, from); },
            [=](std::byte* to, const std::byte* from) { loops.unpack<known>(to, from); }};
}

hand_loop known_loops(const two_loops& loops)
{
    switch (loops.length) {
    case 4:
        return loops_of<4>(loops);
    case 8:
        return loops_of<8>(loops);
    case 12:
        return loops_of<12>(loops);
    case 16:
        return loops_of<16>(loops);
    case 32:
        return loops_of<32>(loops);
    case 40:
        return loops_of<40>(loops);
    case 64:
        return loops_of<64>(loops);
    case 92:
        return loops_of<92>(loops);
    case 100:
        return loops_of<100>(loops);
    case 256:
        return loops_of<256>(loops);
    case 1024:
        return loops_of<1024>(loops);
    case 2048:
        return loops_of<2048>(loops);
    case 4096:
        return loops_of<4096>(loops);
    case 8192:
        return loops_of<8192>(loops);
    default:
        return loops_of<0>(loops);
    }
}

} // namespace

layout_case blocks_case(std::string name, const two_loops& loops, std::size_t element)
{
    const type_ptr blocks =
        vector_of(loops.count, loops.length / element, static_cast<std::int64_t>(loops.stride), number(element));
    const auto outer_stride = static_cast<std::int64_t>(loops.outer_stride);
    layout_case made;
    made.name       = std::move(name);
    made.num_blocks = loops.outer * loops.count;
    made.length     = made.num_blocks * loops.length;
    made.extent     = (loops.outer - 1) * loops.outer_stride + (loops.count - 1) * loops.stride + loops.length;
    made.touched    = std::min(loops.stride >= line ? loops.count * whole(loops.length, line) : made.extent,
                            whole(made.extent, line));
    made.shift = whole(made.extent, page);
    made.type =
        loops.outer == 1 ? blocks : vector_of(loops.outer, 1, outer_stride, resized(loops.outer_stride, blocks));
    made.hand      = known_loops(loops);
    made.by_memcpy = loops_of<0>(loops);
    made.block     = loops.length;
    made.judged_as = loops.length >= line ? family::blocks : family::other;
    return made;
}

layout_case columns_case(std::size_t rows, std::size_t width, std::size_t count)
{
    const std::size_t pitch = width * 8;
    std::string name        = "column of " + std::to_string(rows) + "x" + std::to_string(width);
    if (count > 1) {
        name = std::to_string(count) + " columns of " + std::to_string(rows) + "x" + std::to_string(width);
    }
    layout_case made = blocks_case(std::move(name), {count, 8, rows, pitch, 8}, 8);
    made.touched     = rows * whole(count * 8, line);
    made.shift       = std::max(line, count * 8);
    made.per         = pitch / made.shift;
    made.far_shift   = rows * pitch;
    made.columns     = count;
    made.rows        = rows;
    made.pitch       = pitch;
    if (count % 8 == 0 && rows % 64 == 0) {
        made.judged_as = family::panel;
        made.tuned     = loops_of(squares{count, rows, pitch});
    }
    return made;
}

layout_case vertices_case(std::size_t count)
{
    const type_ptr three = vector_of(count, 3, 32, number(4)), two = vector_of(count, 2, 32, number(4));
    const two_loops first{1, 0, count, 32, 12}, last{1, 0, count, 32, 8};
    layout_case made = blocks_case("3:3:2 vertices to arrays", {1, 0, count, 32, 32}, 4);
    made.type        = record_of({{0, 1, three}, {12, 1, three}, {24, 1, two}});
    made.num_blocks  = 3 * count;
    made.hand        = loops_of(vertices{count});
    made.by_memcpy   = {[=](std::byte* to, const std::byte* from) {
                          first.pack<0>(to, from);
                          first.pack<0>(to + 12 * count, from + 12);
                          last.pack<0>(to + 24 * count, from + 24);
                      },
                        [=](std::byte* to, const std::byte* from) {
                          first.unpack<0>(to, from);
                          first.unpack<0>(to + 12, from + 12 * count);
                          last.unpack<0>(to + 24, from + 24 * count);
                      }};
    made.block       = 0;
    return made;
}

layout_case records_case(std::size_t count)
{
    const type_ptr record = resized(48, record_of({{0, 1, number(8)}, {16, 3, number(4)}, {32, 1, number(8)}}));
    layout_case made;
    made.name       = "vector of struct";
    made.length     = count * 56;
    made.extent     = (count - 1) * 192 + 96;
    made.touched    = made.extent;
    made.shift      = whole(count * 192, page);
    made.num_blocks = count * 6;
    made.type       = vector_of(count, 2, 192, record);
    made.hand       = loops_of(records{count});
    made.judged_as  = family::nested;
    block_list fields;
    for (std::size_t i = 0; i < count * 2; ++i) {
        const std::size_t at = i / 2 * 192 + i % 2 * 48;
        fields.blocks.insert(fields.blocks.end(), {{at, 8}, {at + 16, 12}, {at + 32, 8}});
    }
    auto shared    = std::make_shared<const block_list>(std::move(fields));
    made.by_memcpy = {[=](std::byte* to, const std::byte* from) { shared->pack_by_memcpy(to, from); },
                      [=](std::byte* to, const std::byte* from) { shared->unpack_by_memcpy(to, from); }};
    return made;
}

namespace
{

layout_case strided(std::string name, std::size_t length, std::size_t stride, std::size_t count, std::size_t element)
{
    const two_loops loops{1, 0, count, stride, length};
    layout_case made = blocks_case(std::move(name), loops, element);
    if (length % line == 0 && stride % line == 0) {
        made.tuned = {[=](std::byte* to, const std::byte* from) { loops.pack_streaming(to, from); },
                      [=](std::byte* to, const std::byte* from) { loops.unpack_streaming(to, from); }};
    }
    return made;
}

// Described in numbers of `element` bytes.
layout_case of_list(std::string name, block_list all, std::size_t element, std::size_t extent)
{
    layout_case made;
    std::vector<type_tree::part> parts;
    for (const block_list::block& block : all.blocks) {
        parts.push_back({static_cast<std::int64_t>(block.offset), block.length / element, nullptr});
        made.length += block.length;
    }
    made.name       = std::move(name);
    made.extent     = extent;
    made.touched    = extent;
    made.shift      = whole(extent, page);
    made.num_blocks = all.blocks.size();
    made.judged_as  = family::list;
    made.type       = list_of(std::move(parts), number(element));
    auto shared     = std::make_shared<const block_list>(std::move(all));
    made.hand       = {[=](std::byte* to, const std::byte* from) { shared->pack(to, from); },
                       [=](std::byte* to, const std::byte* from) { shared->unpack(to, from); }};
    made.by_memcpy  = {[=](std::byte* to, const std::byte* from) { shared->pack_by_memcpy(to, from); },
                       [=](std::byte* to, const std::byte* from) { shared->unpack_by_memcpy(to, from); }};
    return made;
}

// Blocks of the key-value cache of a language model, anywhere in it.
layout_case cache_blocks(std::size_t count, std::size_t length)
{
    std::mt19937 random(2026); // as above
    block_list all;
    for (std::size_t i = 0; i < count; ++i) {
        all.blocks.push_back({2 * i * length, length});
    }
    std::ranges::shuffle(all.blocks, random);
    return of_list("KV cache, " + std::to_string(count) + " of " + std::to_string(length), std::move(all), 1,
                   2 * count * length);
}

// One side of a cube of doubles.
layout_case face(char axis, std::size_t side)
{
    const std::size_t row = side * 8, plane = side * row;
    layout_case made = axis == 'x'   ? strided("", 8, row, side * side, 8)
                       : axis == 'y' ? strided("", row, plane, side, 8)
                                     : strided("", plane, plane, 1, 8);
    made.name        = std::string(1, axis) + " face of " + std::to_string(side) + "^3";
    made.extent      = side * plane;
    made.type  = tile_of({side, side, side}, {axis == 'z' ? 1 : side, axis == 'y' ? 1 : side, axis == 'x' ? 1 : side},
                         number(8));
    made.shift = axis == 'x' ? line : axis == 'y' ? row : plane;
    made.per   = axis == 'x' ? row / line : side;
    made.far_shift = side * plane;
    return made;
}

// Of a square matrix of doubles.
layout_case tile(std::size_t rows, std::size_t width, std::size_t side)
{
    layout_case made = strided("", width * 8, side * 8, rows, 8);
    made.name        = "tile " + std::to_string(rows) + "x" + std::to_string(width) + " of " + std::to_string(side);
    made.type        = tile_of({1, side, side}, {1, rows, width}, number(8));
    made.shift       = width * 8;
    made.per         = side / width;
    made.far_shift   = rows * side * 8;
    return made;
}

using maker = std::function<layout_case()>;

} // namespace

layout_case list_case(std::size_t count, bool shuffled, std::size_t element)
{
    std::mt19937 random(12345); // the same case in every run and every process
    block_list all;
    std::size_t offset = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t length = 8 * (1 + random() % 32);
        all.blocks.push_back({offset, length});
        offset += length + 8 * (1 + random() % 32);
    }
    if (shuffled) {
        std::ranges::shuffle(all.blocks, random);
    }
    return of_list("list of " + std::to_string(count) + (shuffled ? ", shuffled" : "") +
                       (element == 1 ? ", bytes" : ""),
                   std::move(all), element, offset);
}

std::vector<case_maker> pack_cases()
{
    std::vector<case_maker> all;
    const auto add = [&](std::size_t payload, maker make) { all.push_back({payload, std::move(make)}); };
    for (const std::size_t payload : {64 * kilo, mega, 16 * mega}) {
        add(payload, [=] { return strided("12 of 32", 12, 32, payload / 12, 4); });
        add(payload, [=] { return vertices_case(payload / 32); });
        add(payload, [=] { return strided("64 of 128", 64, 128, payload / 64, 8); });
        add(payload, [=] { return strided("256 of 512", 256, 512, payload / 256, 8); });
        add(payload, [=] { return strided("4096 of 8192", 4096, 8192, payload / 4096, 8); });
        add(payload, [=] { return list_case(payload / 132, false, 8); });
        add(payload, [=] { return list_case(payload / 132, true, 8); });
        add(payload, [=] { return records_case(payload / 56); });
    }
    for (const std::size_t side : {1024, 2048, 4096, 8192}) {
        add(side * 8, [=] { return columns_case(side, side, 1); });
    }
    for (const std::size_t count : {8, 128, 1024}) {
        add(count * 8192, [=] { return columns_case(1024, 1024, count); });
    }
    for (const std::size_t count : {16, 256}) {
        add(count * 65536, [=] { return columns_case(8192, 8192, count); });
    }
    add(1320000, [] { return list_case(10000, false, 8); });
    add(1320000, [] { return list_case(10000, false, 1); });
    add(1320000, [] { return list_case(10000, true, 8); });
    for (const char axis : {'x', 'y', 'z'}) {
        for (const std::size_t side : {128, 256}) {
            add(side * side * 8, [=] { return face(axis, side); });
        }
    }
    add(64 * kilo, [] { return tile(64, 128, 2048); });
    add(mega, [] { return tile(512, 256, 2048); });
    add(16 * mega, [] { return tile(2048, 1024, 8192); });
    return all;
}

layout_case contiguous_case(std::size_t length)
{
    return strided("contiguous", length, length, 1, 1);
}

std::vector<case_maker> transfer_cases()
{
    std::vector<case_maker> all;
    const auto add = [&](std::size_t payload, maker make) { all.push_back({payload, std::move(make)}); };
    for (const std::size_t payload : {4 * kilo, 64 * kilo, mega, 16 * mega}) {
        const std::size_t rows = std::min<std::size_t>(payload / 8, 8192);
        add(payload, [=] { return columns_case(rows, 1024, payload / 8 / rows); });
        add(payload, [=] { return strided("8 of 32", 8, 32, payload / 8, 8); });
        add(payload, [=] { return strided("12 of 32", 12, 32, payload / 12, 4); });
        add(payload, [=] { return vertices_case(payload / 32); });
        add(payload, [=] { return strided("64 of 128", 64, 128, payload / 64, 8); });
        add(payload, [=] { return strided("256 of 512", 256, 512, payload / 256, 8); });
        if (payload >= 64 * kilo) {
            add(payload, [=] { return strided("4096 of 8192", 4096, 8192, payload / 4096, 8); });
        }
        add(payload, [=] { return list_case(payload / 132, false, 8); });
        add(payload, [=] { return records_case(payload / 56); });
    }
    // Between these sizes the fastest way changes.
    for (const std::size_t payload : {16 * kilo, 256 * kilo, 512 * kilo}) {
        add(payload, [=] { return strided("8 of 32", 8, 32, payload / 8, 8); });
        add(payload, [=] { return vertices_case(payload / 32); });
        add(payload, [=] { return strided("64 of 128", 64, 128, payload / 64, 8); });
        add(payload, [=] { return list_case(payload / 132, false, 8); });
    }
    for (const char axis : {'x', 'y', 'z'}) {
        add(128 * 128 * 8, [=] { return face(axis, 128); });
    }
    all.push_back({.payload = 20 * mega, .make = [] { return cache_blocks(20000, kilo); }, .always = true});
    return all;
}

} // namespace ucxl::bench

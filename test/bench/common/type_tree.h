// A layout as MPI's constructors say it: what both the plans under test and the datatypes of their peers are made from,
// so that all of them move the same bytes. std only: the peers' programs include it too.
//
// Example: column of a 1024 x 1024 matrix of doubles = vector_of(1024, 1, 8192, number(8)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ucxl::bench
{

struct type_tree;
using type_ptr = std::shared_ptr<const type_tree>;

struct type_tree {
    enum class kind { number, vector, list, record, tile, resized };

    struct part {
        std::int64_t offset;
        std::uint64_t count; // children one after the other, at the distance of their extent
        type_ptr child;      // of a list: null, it is the `child` of the tree
    };

    kind what;
    std::size_t extent       = 0;  // number: its length; resized
    std::uint64_t count      = 0;  // vector
    std::uint64_t blocks     = 0;  // vector: children of a block
    std::int64_t stride      = 0;  // vector: bytes
    std::uint64_t rows[3]    = {}; // tile: of the array in each dimension, the last one fastest; 1 where there are less
    std::uint64_t part_of[3] = {}; // tile: how many of them, the first ones
    type_ptr child           = nullptr;
    std::vector<part> parts{}; // list, record
};

inline type_ptr number(std::size_t length)
{
    return std::make_shared<type_tree>(type_tree{.what = type_tree::kind::number, .extent = length});
}

inline type_ptr vector_of(std::uint64_t count, std::uint64_t blocks, std::int64_t stride, type_ptr child)
{
    return std::make_shared<type_tree>(type_tree{.what   = type_tree::kind::vector,
                                                 .count  = count,
                                                 .blocks = blocks,
                                                 .stride = stride,
                                                 .child  = std::move(child)});
}

inline type_ptr list_of(std::vector<type_tree::part> parts, type_ptr child)
{
    return std::make_shared<type_tree>(
        type_tree{.what = type_tree::kind::list, .child = std::move(child), .parts = std::move(parts)});
}

inline type_ptr record_of(std::vector<type_tree::part> parts)
{
    return std::make_shared<type_tree>(type_tree{.what = type_tree::kind::record, .parts = std::move(parts)});
}

inline type_ptr tile_of(const std::uint64_t (&rows)[3], const std::uint64_t (&part_of)[3], type_ptr child)
{
    return std::make_shared<type_tree>(type_tree{.what    = type_tree::kind::tile,
                                                 .rows    = {rows[0], rows[1], rows[2]},
                                                 .part_of = {part_of[0], part_of[1], part_of[2]},
                                                 .child   = std::move(child)});
}

inline type_ptr resized(std::size_t extent, type_ptr child)
{
    return std::make_shared<type_tree>(
        type_tree{.what = type_tree::kind::resized, .extent = extent, .child = std::move(child)});
}

// fn(offset, length) for every number or run of neighbouring numbers, in packed order: the reference of the benchmarks.
template <typename Fn>
void walk(const type_tree& type, std::int64_t offset, Fn&& fn)
{
    const auto many = [&](const type_ptr& child, std::int64_t at, std::uint64_t count) {
        const auto extent = static_cast<std::int64_t>(child->extent);
        if (child->what == type_tree::kind::number) {
            fn(at, count * child->extent);
            return;
        }
        for (std::uint64_t i = 0; i < count; ++i) {
            walk(*child, at + static_cast<std::int64_t>(i) * extent, fn);
        }
    };
    switch (type.what) {
    case type_tree::kind::number:
        fn(offset, type.extent);
        break;
    case type_tree::kind::vector:
        for (std::uint64_t i = 0; i < type.count; ++i) {
            many(type.child, offset + static_cast<std::int64_t>(i) * type.stride, type.blocks);
        }
        break;
    case type_tree::kind::list:
    case type_tree::kind::record:
        for (const type_tree::part& part : type.parts) {
            many(part.child ? part.child : type.child, offset + part.offset, part.count);
        }
        break;
    case type_tree::kind::tile:
        for (std::uint64_t i = 0; i < type.part_of[0]; ++i) {
            for (std::uint64_t k = 0; k < type.part_of[1]; ++k) {
                const std::uint64_t row = (i * type.rows[1] + k) * type.rows[2] * type.child->extent;
                many(type.child, offset + static_cast<std::int64_t>(row), type.part_of[2]);
            }
        }
        break;
    case type_tree::kind::resized:
        walk(*type.child, offset, fn);
        break;
    }
}

} // namespace ucxl::bench

#include "tree_layout.h"

#include "support/must.h"

#include "ucs/layout/build.h"

namespace ucxl::bench
{

namespace
{

// `count` children one after the other.
element many(const type_tree& child, std::uint64_t count)
{
    if (child.what == type_tree::kind::number) {
        return {.length = child.extent * count};
    }
    const element one{.nested = layout_of(child)};
    const dim following[] = {{count, static_cast<std::int64_t>(child.extent)}};
    return count == 1 ? one : element{.nested = test::must(make_strided(one, following))};
}

layout_ptr parts_of(const type_tree& type)
{
    std::vector<iov_part> parts;
    for (const type_tree::part& part : type.parts) {
        parts.push_back({0, part.offset, many(part.child ? *part.child : *type.child, part.count)});
    }
    return test::must(make_iov(parts));
}

layout_ptr tile_layout(const type_tree& type)
{
    const auto row     = static_cast<std::int64_t>(type.rows[2] * type.child->extent);
    const dim places[] = {{type.part_of[0], row * static_cast<std::int64_t>(type.rows[1])}, {type.part_of[1], row}};
    return test::must(make_strided(many(*type.child, type.part_of[2]), places));
}

} // namespace

layout_ptr layout_of(const type_tree& type)
{
    switch (type.what) {
    case type_tree::kind::number:
        break;
    case type_tree::kind::vector: {
        const dim blocks[] = {{type.count, type.stride}};
        return test::must(make_strided(many(*type.child, type.blocks), blocks));
    }
    case type_tree::kind::list:
    case type_tree::kind::record:
        return parts_of(type);
    case type_tree::kind::tile:
        return tile_layout(type);
    case type_tree::kind::resized:
        return layout_of(*type.child);
    }
    return test::must(make_strided({.length = type.extent}, {}));
}

} // namespace ucxl::bench

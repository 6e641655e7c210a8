#include "build.h"

#include "assembly.h"
#include "checked.h"
#include "iov_list.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

result<layout_ptr> strided(const element& item, std::span<const dim> dims)
{
    UCXL_TRY(check_dims(dims, "strided"));
    assembly parts;
    auto at = UCXL_TRY(parts.place(item, "strided: item"));
    if (std::ranges::any_of(dims, [](const dim& d) { return d.count == 0; })) {
        return parts.finish({});
    }
    auto moved = travel_along(dims);
    if (!moved) {
        // A layout without bytes may move any distance.
        return at.is_empty() ? parts.finish({}) : std::unexpected(std::move(moved.error()));
    }
    UCXL_TRY(parts.use(item, 0, 0, *moved));
    auto root = UCXL_TRY(parts.repeat(at, dims));
    return parts.finish(root);
}

result<layout_ptr> iov(std::span<const iov_part> list)
{
    iov_list parts;
    UCXL_TRY(parts.reserve(list.size()));
    for (const iov_part& part : list) {
        UCXL_TRY(parts.add(part.source, part.offset, part.item));
    }
    return parts.finish();
}

result<layout_ptr> resized(const layout& from, std::int64_t lb, std::int64_t extent, std::uint32_t source)
{
    std::int64_t ub;
    if (source >= limits::max_sources) {
        return fail(errc::exceeds_limit,
                    std::format("resize: source {} exceeds max_sources ({})", source, limits::max_sources));
    }
    if (extent < 0) {
        return fail(errc::invalid_param, std::format("resize: extent {} is negative", extent));
    }
    if (!checked::is_offset(lb) || !checked::add(lb, extent, ub) || !checked::is_offset(ub)) {
        return fail(errc::exceeds_limit, std::format("resize: lb {} or lb + extent {} exceeds max_offset ({})", lb,
                                                     extent, limits::max_offset));
    }
    return layout_builder::with_bounds(from, {source, lb, ub});
}

} // namespace

result<layout_ptr> make_contig(std::uint64_t count, const element& item)
{
    return guarded([&]() -> result<layout_ptr> {
        if (item.nested == nullptr && item.length > limits::max_length) {
            return fail(errc::exceeds_limit,
                        std::format("contig: length {} exceeds max_length ({})", item.length, limits::max_length));
        }
        const std::int64_t distance = item.nested ? item.nested->extent() : static_cast<std::int64_t>(item.length);
        const dim along{count, distance};
        return strided(item, {&along, 1});
    });
}

result<layout_ptr> make_strided(const element& item, std::span<const dim> dims)
{
    return guarded([&] { return strided(item, dims); });
}

result<layout_ptr> make_iov(std::span<const iov_part> parts)
{
    return guarded([&] { return iov(parts); });
}

result<layout_ptr> resize(const layout& from, std::int64_t lb, std::int64_t extent, std::uint32_t source)
{
    return guarded([&] { return resized(from, lb, extent, source); });
}

} // namespace ucxl

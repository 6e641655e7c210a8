#include "spec.h"

#include "ucs/layout/walk.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace ucxl::test
{

namespace
{

using visitor    = std::function<void(const segment&)>;
using bounds_map = std::map<std::uint32_t, layout_bounds>;

void visit(const spec& of, std::uint32_t source, std::int64_t offset, const visitor& see);

// fn(offset) for every index of dims, the last one fastest.
void for_each_index(const std::vector<dim>& dims, const std::function<void(std::int64_t)>& fn)
{
    for (const dim& along : dims) {
        if (along.count == 0) {
            return;
        }
    }
    std::vector<std::uint64_t> index(dims.size(), 0);
    for (;;) {
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < dims.size(); ++k) {
            offset += static_cast<std::int64_t>(index[k]) * dims[k].stride;
        }
        fn(offset);
        std::size_t k = dims.size();
        while (k > 0 && ++index[k - 1] == dims[k - 1].count) {
            index[--k] = 0;
        }
        if (k == 0) {
            return;
        }
    }
}

std::vector<std::int64_t> datum_offsets(const spec_part& part)
{
    std::vector<std::int64_t> offsets;
    for_each_index(part.dims, [&](std::int64_t offset) { offsets.push_back(part.offset + offset); });
    return offsets;
}

void visit_interleaved(const spec& of, std::uint32_t source, std::int64_t offset, const visitor& see)
{
    std::vector<std::vector<std::int64_t>> datums;
    for (const spec_part& part : of.parts) {
        datums.push_back(packed_length_of(*part.item) > 0 ? datum_offsets(part) : std::vector<std::int64_t>{});
    }
    std::vector<std::size_t> next(of.parts.size(), 0);
    for (bool is_left = true; is_left;) {
        is_left = false;
        for (std::size_t i = 0; i < of.parts.size(); ++i) {
            for (std::uint64_t taken = 0; taken < of.parts[i].repeat && next[i] < datums[i].size(); ++taken) {
                visit(*of.parts[i].item, source + of.parts[i].source, offset + datums[i][next[i]++], see);
                is_left = true;
            }
        }
    }
}

void visit(const spec& of, std::uint32_t source, std::int64_t offset, const visitor& see)
{
    switch (of.what) {
    case spec::kind::block:
        if (of.length > 0) {
            see({source, offset, of.length});
        }
        return;
    case spec::kind::contig:
        for (std::uint64_t i = 0; i < of.count; ++i) {
            visit(*of.item, source, offset + static_cast<std::int64_t>(i) * of.extent, see);
        }
        return;
    case spec::kind::strided:
        for_each_index(of.dims, [&](std::int64_t at) { visit(*of.item, source, offset + at, see); });
        return;
    case spec::kind::iov:
        for (const spec_part& part : of.parts) {
            visit(*part.item, source + part.source, offset + part.offset, see);
        }
        return;
    case spec::kind::interleaved:
        visit_interleaved(of, source, offset, see);
        return;
    case spec::kind::resized:
        visit(*of.item, source, offset, see);
        return;
    }
}

// The lb and ub of an element used at some offset.
void widen(bounds_map& bounds, const bounds_map& item, std::uint32_t source, std::int64_t offset)
{
    for (const auto& [above, from] : item) {
        const auto [found, is_new] = bounds.try_emplace(source + above, layout_bounds{0, 0, INT64_MAX, INT64_MIN});
        found->second.lb           = std::min(found->second.lb, from.lb + offset);
        found->second.ub           = std::max(found->second.ub, from.ub + offset);
        if (from.true_ub > from.true_lb) {
            layout_bounds& whole = found->second;
            const bool is_first  = whole.true_ub == whole.true_lb;
            whole.true_lb        = is_first ? from.true_lb + offset : std::min(whole.true_lb, from.true_lb + offset);
            whole.true_ub        = is_first ? from.true_ub + offset : std::max(whole.true_ub, from.true_ub + offset);
        }
    }
}

bounds_map set_bounds_of(const spec& of)
{
    bounds_map bounds;
    const bounds_map item = of.item ? set_bounds_of(*of.item) : bounds_map{};
    switch (of.what) {
    case spec::kind::block:
        if (of.length > 0) {
            const auto length = static_cast<std::int64_t>(of.length);
            bounds[0]         = {0, length, 0, length};
        }
        break;
    case spec::kind::contig:
        for (std::uint64_t i = 0; i < of.count; ++i) {
            widen(bounds, item, 0, static_cast<std::int64_t>(i) * of.extent);
        }
        break;
    case spec::kind::strided: {
        // The others lie between these two.
        std::optional<std::pair<std::int64_t, std::int64_t>> ends;
        for_each_index(of.dims, [&](std::int64_t at) {
            ends = ends ? std::pair(std::min(ends->first, at), std::max(ends->second, at)) : std::pair(at, at);
        });
        if (ends) {
            widen(bounds, item, 0, ends->first);
            widen(bounds, item, 0, ends->second);
        }
        break;
    }
    case spec::kind::iov:
        for (const spec_part& part : of.parts) {
            widen(bounds, set_bounds_of(*part.item), part.source, part.offset);
        }
        break;
    case spec::kind::interleaved:
        for (const spec_part& part : of.parts) {
            const bounds_map datum = set_bounds_of(*part.item);
            for (std::int64_t at : datum_offsets(part)) {
                widen(bounds, datum, part.source, at);
            }
        }
        break;
    case spec::kind::resized:
        bounds       = item;
        bounds[0].lb = of.lb;
        bounds[0].ub = of.lb + of.extent;
        break;
    }
    std::erase_if(bounds, [](const auto& entry) { return entry.second == layout_bounds{}; });
    return bounds;
}

spec_ptr make(spec&& of)
{
    return std::make_shared<const spec>(std::move(of));
}

} // namespace

spec_ptr spec::block(std::uint64_t length)
{
    spec made;
    made.length = length;
    return make(std::move(made));
}

spec_ptr spec::contig(std::uint64_t count, spec_ptr item)
{
    spec made;
    made.what   = kind::contig;
    made.count  = count;
    made.extent = extent_of(*item);
    made.item   = std::move(item);
    return make(std::move(made));
}

spec_ptr spec::strided(spec_ptr item, std::vector<dim> dims)
{
    spec made;
    made.what = kind::strided;
    made.dims = std::move(dims);
    made.item = std::move(item);
    return make(std::move(made));
}

spec_ptr spec::iov(std::vector<spec_part> parts)
{
    spec made;
    made.what  = kind::iov;
    made.parts = std::move(parts);
    return make(std::move(made));
}

spec_ptr spec::interleaved(std::vector<spec_part> parts)
{
    spec made;
    made.what  = kind::interleaved;
    made.parts = std::move(parts);
    return make(std::move(made));
}

spec_ptr spec::resized(spec_ptr item, std::int64_t lb, std::int64_t extent)
{
    spec made;
    made.what   = kind::resized;
    made.item   = std::move(item);
    made.lb     = lb;
    made.extent = extent;
    return make(std::move(made));
}

std::vector<segment> joined(const std::vector<segment>& segments)
{
    std::vector<segment> out;
    for (const segment& next : segments) {
        if (next.length == 0) {
            continue;
        }
        if (!out.empty() && out.back().source == next.source &&
            out.back().offset + static_cast<std::int64_t>(out.back().length) == next.offset) {
            out.back().length += next.length;
        } else {
            out.push_back(next);
        }
    }
    return out;
}

std::vector<segment> segments_of(const spec& of)
{
    std::vector<segment> segments;
    visit(of, 0, 0, [&](const segment& next) { segments.push_back(next); });
    return joined(segments);
}

std::vector<segment> segments_of(const layout& of)
{
    std::vector<segment> segments;
    for_each_block(of, 0, of.packed_length(),
                   [&](const placed_block& block) { segments.push_back({block.source, block.offset, block.length}); });
    return joined(segments);
}

std::uint64_t packed_length_of(const spec& of)
{
    std::uint64_t length = 0;
    visit(of, 0, 0, [&](const segment& next) { length += next.length; });
    return length;
}

std::map<std::uint32_t, layout_bounds> bounds_of(const spec& of)
{
    bounds_map bounds = set_bounds_of(of);
    bounds_map seen;
    visit(of, 0, 0, [&](const segment& next) {
        const auto [found, is_new] = seen.try_emplace(next.source, layout_bounds{INT64_MAX, INT64_MIN, 0, 0});
        found->second.true_lb      = std::min(found->second.true_lb, next.offset);
        found->second.true_ub = std::max(found->second.true_ub, next.offset + static_cast<std::int64_t>(next.length));
    });
    for (const auto& [source, from] : seen) {
        bounds[source].true_lb = from.true_lb;
        bounds[source].true_ub = from.true_ub;
    }
    return bounds;
}

std::int64_t extent_of(const spec& of)
{
    std::int64_t extent = 0;
    for (const auto& [source, bounds] : set_bounds_of(of)) {
        extent = std::max(extent, bounds.ub - bounds.lb);
    }
    return extent;
}

std::uint32_t num_sources_of(const spec& of)
{
    const auto bounds = bounds_of(of);
    return bounds.empty() ? 1 : bounds.rbegin()->first + 1;
}

bool has_overlap(const spec& of)
{
    std::vector<segment> segments;
    visit(of, 0, 0, [&](const segment& next) { segments.push_back(next); });
    std::ranges::sort(segments, [](const segment& a, const segment& b) {
        return a.source != b.source ? a.source < b.source : a.offset < b.offset;
    });
    for (std::size_t i = 1; i < segments.size(); ++i) {
        const segment& before = segments[i - 1];
        if (before.source == segments[i].source &&
            before.offset + static_cast<std::int64_t>(before.length) > segments[i].offset) {
            return true;
        }
    }
    return false;
}

} // namespace ucxl::test

#include "assembly.h"

#include "checked.h"
#include "normalise.h"

#include <algorithm>
#include <format>

namespace ucxl
{

namespace
{

bool has_bytes_or_bounds(const layout_bounds& bounds)
{
    return bounds != layout_bounds{};
}

bool has_user_bounds(const layout& layout)
{
    for (std::uint32_t source = 0; source < layout.num_sources(); ++source) {
        const layout_bounds& bounds = layout.bounds(source);
        if (bounds.lb != bounds.true_lb || bounds.ub != bounds.true_ub) {
            return true;
        }
    }
    return false;
}

} // namespace

result<void> check_part(std::uint32_t source, std::int64_t offset, std::string_view name)
{
    if (source >= limits::max_sources) {
        return fail(errc::exceeds_limit,
                    std::format("{}: source {} exceeds max_sources ({})", name, source, limits::max_sources));
    }
    if (!checked::is_offset(offset)) {
        return fail(errc::exceeds_limit,
                    std::format("{}: offset {} exceeds max_offset ({})", name, offset, limits::max_offset));
    }
    return {};
}

result<void> check_dims(std::span<const dim> dims, std::string_view name)
{
    if (dims.size() > limits::max_dims) {
        return fail(errc::exceeds_limit,
                    std::format("{}: {} dims exceed max_dims ({})", name, dims.size(), limits::max_dims));
    }
    return {};
}

result<travel> travel_along(std::span<const dim> dims)
{
    travel moved;
    for (std::size_t i = 0; i < dims.size(); ++i) {
        std::int64_t distance;
        if (!checked::mul(dims[i].count - 1, dims[i].stride, distance) ||
            !(distance < 0 ? checked::add(moved.least, distance, moved.least)
                           : checked::add(moved.most, distance, moved.most))) {
            return fail(errc::exceeds_limit, std::format("dims[{}]: {} times stride {} exceeds max_offset ({})", i,
                                                         dims[i].count, dims[i].stride, limits::max_offset));
        }
    }
    return moved;
}

result<placed> assembly::place(const element& item, std::string_view name)
{
    if (item.nested == nullptr) {
        if (item.length > limits::max_length) {
            return fail(errc::exceeds_limit,
                        std::format("{}: length {} exceeds max_length ({})", name, item.length, limits::max_length));
        }
        return item.length == 0 ? placed{} : placed{0, _nest.block(item.length), 0};
    }
    if (const auto found = _known.find(item.nested.get()); found != _known.end()) {
        return found->second.root;
    }
    auto at = _nest.import(*item.nested);
    if (at) {
        const bool set = has_user_bounds(*item.nested);
        _known.emplace(item.nested.get(), known_layout{*at, set});
    }
    return at;
}

result<void> assembly::use(const element& item, std::uint32_t source, std::int64_t offset, const travel& moved)
{
    const auto at = [&](std::int64_t bound, std::int64_t distance, std::int64_t& out) {
        return checked::add(bound, distance, out) && checked::add(out, offset, out);
    };
    const auto add = [&](std::uint32_t above, std::int64_t lb, std::int64_t ub) -> result<void> {
        user_bounds bounds{source + above, 0, 0};
        if (!at(lb, moved.least, bounds.lb) || !at(ub, moved.most, bounds.ub)) {
            return fail(errc::exceeds_limit,
                        std::format("source {}: a bound exceeds max_offset ({})", bounds.source, limits::max_offset));
        }
        add_use(bounds);
        return {};
    };
    // Also for sources that are not used, which are looked at.
    _num_uses += item.nested == nullptr ? 1 : item.nested->num_sources();
    if (_num_uses > limits::max_span_steps) {
        return fail(errc::exceeds_limit, std::format("uses of sources with user-set bounds exceed max_span_steps ({})",
                                                     limits::max_span_steps));
    }
    if (item.nested == nullptr) {
        return item.length == 0 ? result<void>{} : add(0, 0, static_cast<std::int64_t>(item.length));
    }
    _has_user_bounds = _has_user_bounds || _known.at(item.nested.get()).has_user_bounds;
    for (std::uint32_t above = 0; above < item.nested->num_sources(); ++above) {
        const layout_bounds& bounds = item.nested->bounds(above);
        if (has_bytes_or_bounds(bounds)) {
            UCXL_TRY(add(above, bounds.lb, bounds.ub));
        }
    }
    return {};
}

result<placed> assembly::repeat(placed item, std::span<const dim> dims)
{
    for (std::size_t i = dims.size(); i-- > 0;) {
        item = UCXL_TRY(normalise(_nest, dims[i].count, {{item.source, item.node, item.offset, dims[i].stride}}));
    }
    return item;
}

result<layout_ptr> assembly::finish(const placed& root)
{
    if (!_has_user_bounds) {
        return layout_builder::finish(std::move(_nest), root);
    }
    std::ranges::sort(_bounds, {}, &user_bounds::source);
    std::size_t kept = 0;
    for (const user_bounds& bounds : _bounds) {
        if (kept > 0 && _bounds[kept - 1].source == bounds.source) {
            _bounds[kept - 1].lb = std::min(_bounds[kept - 1].lb, bounds.lb);
            _bounds[kept - 1].ub = std::max(_bounds[kept - 1].ub, bounds.ub);
        } else {
            _bounds[kept++] = bounds;
        }
    }
    return layout_builder::finish(std::move(_nest), root, std::span(_bounds).first(kept));
}

} // namespace ucxl

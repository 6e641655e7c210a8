#include "side.h"

#include "integration/two_process/layouts.h"
#include "support/check.h"

namespace ucxl::soak
{

namespace
{

// Of all sources of a layout, with room around each.
std::size_t memory_for(const test::spec& layout)
{
    std::size_t length = 0;
    for (const auto& [source, bounds] : test::bounds_of(layout)) {
        length += static_cast<std::size_t>(bounds.true_ub - bounds.true_lb) + 4096;
    }
    return length;
}

} // namespace

side::side(ucp_context_h context, memory_kind kind, const test::spec& layout, std::uint64_t seed)
{
    std::pmr::memory_resource* resource = std::pmr::get_default_resource();
    if (kind == memory_kind::shared) {
        auto region = ucx_layout::memory::allocate(memory_for(layout));
        test::check(region.has_value(), "ucp_layout_memory_create: {}",
                    region ? "" : ucs_status_string(region.error()));
        _region.emplace(std::move(*region));
        resource =
            &_resource.emplace(_region->bytes().data(), _region->bytes().size(), std::pmr::null_memory_resource());
    }
    _actual.emplace(layout, seed, 0, resource);
    _expected.emplace(layout, seed);
    if (kind == memory_kind::contiguous) {
        return;
    }
    _layout.emplace(two_process::create_layout(layout));
    std::vector<const void*> bases(_actual->bases().begin(), _actual->bases().end());
    auto window = ucx_layout::window::map(context, *_layout, bases);
    test::check(window.has_value(), "ucp_layout_map: {}", window ? "" : ucs_status_string(window.error()));
    _window.emplace(std::move(*window));
}

} // namespace ucxl::soak

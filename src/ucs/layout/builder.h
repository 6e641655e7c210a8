// The last step of every builder: a normalised nest becomes a layout. Orders the nodes, fills in what is derived from
// them (packed offsets, statistics, bounds, overlap, hash) and checks the limits that hold for a whole layout.
#pragma once

#include "nest.h"

namespace ucxl
{

// Bounds that were set by the user, somewhere below. Sources without one have the bounds of their bytes.
struct user_bounds {
    std::uint32_t source = 0;
    std::int64_t lb      = 0;
    std::int64_t ub      = 0;
};

class layout_builder
{
public:
    // `bounds`: each source at most once, in any order.
    static result<layout_ptr> finish(const nest& from, const placed& root, std::span<const user_bounds> bounds = {});
    // The same bytes, other bounds of one source.
    static result<layout_ptr> with_bounds(const layout& from, const user_bounds& set);

private:
    result<void> set_nest(const nest& from, const placed& root);
    result<void> set_bounds(std::span<const user_bounds> bounds);
    void drop_unused_sources();
    void set_derived();

    std::shared_ptr<layout> _made = std::make_shared<layout>();
};

// Runs fn and turns an allocation that failed into an error: what every function of build.h, text.h and wire.h does.
template <typename Fn>
auto guarded(Fn&& fn) noexcept -> decltype(fn())
{
    try {
        return fn();
    } catch (const std::bad_alloc&) {
        return fail(errc::no_memory, "out of memory"); // short enough not to allocate
    }
}

} // namespace ucxl

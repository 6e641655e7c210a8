// The last step of every builder: makes a layout from a normalised nest. It orders the nodes, derives packed offsets,
// statistics, bounds and hash, and checks the limits of a whole layout.
#pragma once

#include "nest.h"

namespace ucxl
{

// Bounds set by the user in this layout or in a nested one. All other sources have the bounds of their bytes.
struct user_bounds {
    std::uint32_t source = 0;
    std::int64_t lb      = 0;
    std::int64_t ub      = 0;
};

class layout_builder
{
public:
    // `bounds` names each source at most once, in any order.
    static result<layout_ptr> finish(const nest& from, const placed& root, std::span<const user_bounds> bounds = {});
    // Returns a layout of the same bytes, with other bounds for one source.
    static result<layout_ptr> with_bounds(const layout& from, const user_bounds& set);

private:
    result<void> set_nest(const nest& from, const placed& root);
    result<void> set_bounds(std::span<const user_bounds> bounds);
    void drop_unused_sources();
    void set_derived();

    std::shared_ptr<layout> _made = std::make_shared<layout>();
};

// Runs fn and reports a failed allocation as an error. Every function of build.h, text.h and wire.h runs behind it.
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

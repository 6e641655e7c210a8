// The last step of every builder: makes a layout from a normalised nest. It orders the nodes, derives packed offsets,
// statistics, bounds and hash, and checks the limits of a whole layout.
#pragma once

#include "bounds.h"
#include "hash.h"
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
    static result<layout_ptr> finish(nest&& from, const placed& root, std::span<const user_bounds> bounds = {});
    // Of all that a wire form says. Returns nullptr if that is not the wire form of the layout: if it has other nodes,
    // has them in another order, or sets bounds that are those of the bytes.
    static result<layout_ptr> read(nest&& from, const placed& root, std::span<const user_bounds> bounds,
                                   const hashed_wire_form& form);
    // Returns a layout of the same bytes, with other bounds for one source.
    static result<layout_ptr> with_bounds(const layout& from, const user_bounds& set);

private:
    result<void> set_nest(nest& from, const placed& root);
    void add_node(const nest_node& node);
    void derive_entries(layout_node& loop);
    result<std::vector<source_span>> spans(const nest& from, const placed& root) const;
    result<void> set_bounds(std::span<const source_span> spans, std::span<const user_bounds> bounds);
    result<void> set_all(nest& from, const placed& root, std::span<const user_bounds> bounds);
    void drop_unused_sources();
    void set_derived(const hashed_wire_form& form);

    std::shared_ptr<layout> _made = std::make_shared<layout>();
    std::uint32_t _num_entries    = 0;     // of the nodes so far
    bool _keeps_order             = false; // the layout has all nodes of the nest, in their order
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

// What the builders share: one call's nest, its nested layouts (taken over once each), its user-set bounds, its checks.
//
// Example: assembly parts; auto item = parts.place(element, "item"); ...; return parts.finish(root);
#pragma once

#include "build.h"
#include "builder.h"

#include <string_view>
#include <unordered_map>

namespace ucxl
{

// How far an element is moved by the loops around it, in bytes, least and most.
struct travel {
    std::int64_t least = 0;
    std::int64_t most  = 0;
};

class assembly
{
public:
    // The normal form of an element at offset 0 of source 0. `name` is for messages.
    result<placed> place(const element& item, std::string_view name);
    // Notes that the element is used there, for the bounds of the whole.
    result<void> use(const element& item, std::uint32_t source, std::int64_t offset, const travel& moved);
    // item repeated along dims, dims[0] outermost.
    result<placed> repeat(placed item, std::span<const dim> dims);
    result<layout_ptr> finish(const placed& root);

    nest& in() { return _nest; }

private:
    struct known_layout {
        placed at;
        bool has_user_bounds;
    };

    nest _nest;
    std::unordered_map<const layout*, known_layout> _known;
    std::vector<user_bounds> _bounds;
    bool _has_user_bounds = false;
};

result<void> check_part(std::uint32_t source, std::int64_t offset, std::string_view name);
result<void> check_dims(std::span<const dim> dims, std::string_view name);
// Of an element along dims; not for dims of no elements.
result<travel> travel_along(std::span<const dim> dims);

} // namespace ucxl

// What all builders share: the nest of one call, its nested layouts (each imported once), the bounds set by the user,
// and the checks.
//
// Example: assembly parts; auto item = parts.place(element, "item"); ...; return parts.finish(root);
#pragma once

#include "build.h"
#include "layout_builder.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace ucxl
{

// The smallest and the largest distance in bytes by which the surrounding loops move an element.
struct travel {
    std::int64_t least = 0;
    std::int64_t most  = 0;
};

class assembly
{
public:
    // Returns the normal form of an element at offset 0 of source 0. `name` appears in error messages.
    result<placed> place(const element& item, std::string_view name);
    // Records one use of the element, so that finish() can derive the bounds of the whole layout.
    result<void> use(const element& item, std::uint32_t source, std::int64_t offset, const travel& moved);
    // Both for bytes of one block, within the limits of all three numbers; returns the block's node.
    std::uint32_t use_bytes(std::uint64_t length, std::uint32_t source, std::int64_t offset)
    {
        add_use({source, offset, offset + static_cast<std::int64_t>(length)});
        return _nest.block(length);
    }
    // Repeats the item along dims; dims[0] is the outermost dimension.
    result<placed> repeat(placed item, std::span<const dim> dims);
    result<layout_ptr> finish(const placed& root);

    nest& loops() { return _nest; }

private:
    struct known_layout {
        placed root;
        bool has_user_bounds;
    };

    // Uses of one source in sequence, as most are, are kept as one.
    void add_use(const user_bounds& bounds)
    {
        if (!_bounds.empty() && _bounds.back().source == bounds.source) {
            _bounds.back().lb = std::min(_bounds.back().lb, bounds.lb);
            _bounds.back().ub = std::max(_bounds.back().ub, bounds.ub);
        } else {
            _bounds.push_back(bounds);
        }
    }

    nest _nest;
    std::unordered_map<const layout*, known_layout> _known;
    std::vector<user_bounds> _bounds;
    std::uint64_t _num_uses = 0; // of sources, that use() looked at
    bool _has_user_bounds   = false;
};

result<void> check_part(std::uint32_t source, std::int64_t offset, std::string_view name);
result<void> check_dims(std::span<const dim> dims, std::string_view name);
// The travel of an element along dims. No dim may have count 0.
result<travel> travel_along(std::span<const dim> dims);

} // namespace ucxl

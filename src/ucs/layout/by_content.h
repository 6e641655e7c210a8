// Orders layouts by content, not by address; by the hash first, so that a search by hash finds them, too.
//
// Example: std::map<const layout*, T, by_content> all; all.lower_bound(layout.hash());
#pragma once

#include "layout.h"

namespace ucxl
{

struct by_content {
    using is_transparent = void;

    bool operator()(const layout* left, const layout* right) const { return *left < *right; }
    bool operator()(const layout* left, std::uint64_t hash) const { return left->hash() < hash; }
    bool operator()(std::uint64_t hash, const layout* right) const { return hash < right->hash(); }
};

} // namespace ucxl

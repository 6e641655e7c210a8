#include "layout.h"

#include <tuple>

namespace ucxl
{

bool layout::operator==(const layout& other) const
{
    return _hash == other._hash && _num_sources == other._num_sources && _root == other._root &&
           _nodes == other._nodes && _entries == other._entries && _bounds == other._bounds;
}

std::strong_ordering layout::operator<=>(const layout& other) const
{
    const auto content = [](const layout& from) {
        return std::tie(from._hash, from._num_sources, from._root, from._nodes, from._entries, from._bounds);
    };
    return content(*this) <=> content(other);
}

} // namespace ucxl

#include "layout.h"

namespace ucxl
{

bool layout::operator==(const layout& other) const
{
    return _hash == other._hash && _num_sources == other._num_sources && _root == other._root &&
           _nodes == other._nodes && _entries == other._entries && _bounds == other._bounds;
}

} // namespace ucxl

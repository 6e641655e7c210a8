// A layout with what Python asks of it again and again. Immutable and shared: by Layout objects, by the operations that
// use it, and by the cache of layouts of arrays.
//
// Example: const auto column = layout_of_array(source);
#pragma once

#include "array.h"
#include "made_once.h"

#include <memory>
#include <vector>

namespace ucxl::python
{

class shared_layout
{
public:
    explicit shared_layout(ucx_layout::layout&& handle);

    const ucx_layout::layout& handle() const { return _handle; }
    std::size_t packed_length() const { return _attributes.packed_length; }
    std::uint32_t num_sources() const { return _attributes.num_sources; }
    // Where the bytes of each source are.
    const std::vector<extent>& bounds() const { return _bounds; }
    // UCP_LAYOUT_ATTR_FIELD_*; some of them visit all blocks.
    ucp_layout_attr_t query(std::uint64_t fields) const;

    // Computed once; MAYBE if memory was missing. Any thread may ask, with the GIL or without it.
    ucp_layout_overlap_t overlap() const;
    // Compiled once; null if memory was missing.
    const ucx_layout::plan* plan() const;

private:
    ucx_layout::layout _handle;
    ucp_layout_attr_t _attributes{};
    std::vector<extent> _bounds;
    made_once<ucp_layout_overlap_t> _overlap;
    made_once<ucx_layout::plan> _plan;
};

using shared_layout_ptr = std::shared_ptr<const shared_layout>;

// The elements of an array in C order, from its first element. Layouts of the last shapes are kept, and with them their
// plans. Needs the GIL.
shared_layout_ptr layout_of_array(const array& source);

// Makes a layout by create(), which returns a result<layout>; raises its error after "WHERE: ".
template <typename Create>
shared_layout_ptr make_shared_layout(const char* where, Create&& create)
{
    return std::make_shared<const shared_layout>(checked(where, create));
}

} // namespace ucxl::python

// One source of an interleaved layout as a sequence of elements: element j lies at offset(j), and each cycle takes
// `repeat` of them.
#pragma once

#include "assembly.h"

namespace ucxl
{

class element_sequence
{
public:
    // No dim may have count 0; all dims together describe at most max_length elements.
    element_sequence(const placed& item, std::uint64_t repeat, std::span<const dim> dims);

    std::uint64_t total() const { return _spans.front(); }
    std::uint64_t repeat() const { return _repeat; }
    std::uint64_t full_cycles() const { return total() / _repeat; }
    std::uint64_t cycles() const { return full_cycles() + (total() % _repeat != 0 ? 1 : 0); }

    // The offset of element `index` < total(), relative to element 0.
    std::int64_t offset(std::uint64_t index) const;
    // Appends the elements [first, first + count) as at most 2 * dims loops.
    result<void> append(assembly& parts, std::uint64_t first, std::uint64_t count, std::vector<nest_item>& items) const;
    // Adds the cycle counts after which an inner dimension wraps. Returns false if a dimension wraps inside a cycle, at
    // a place that differs from cycle to cycle.
    bool add_breaks(std::vector<std::uint64_t>& breaks) const;

private:
    result<void> append_level(assembly& parts, std::size_t level, std::uint64_t first, std::uint64_t count,
                              std::int64_t offset, std::vector<nest_item>& items) const;

    placed _item;
    std::uint64_t _repeat;
    std::vector<dim> _dims;
    std::vector<std::uint64_t> _spans; // _spans[k]: elements of dims k and of the inner dims; the last is 1
};

} // namespace ucxl

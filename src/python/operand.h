// One side of an operation: arrays, and the layout that says which of their bytes.
//
// Without a layout it is all elements of one array, in C order. With one, the arrays are its sources: byte 0 of source
// i is the first element of array i, and all bytes of the layout have to be inside of its array.
//
// Example: const operand target(object, "target", layout);   // raises if a byte would be outside
#pragma once

#include "shared_layout.h"

#include <list>

namespace ucxl::python
{

class operand
{
public:
    // `layout` may be null.
    operand(nb::handle arrays, const char* name, shared_layout_ptr layout);

    const shared_layout& layout() const { return *_layout; }
    const shared_layout_ptr& layout_ptr() const { return _layout; }
    std::size_t length() const { return _layout->packed_length(); }
    std::span<void* const> bases() const { return _bases; }
    std::span<const void* const> const_bases() const { return {_bases.data(), _bases.size()}; }
    const std::list<array>& arrays() const { return _arrays; }
    const array& front() const { return _arrays.front(); }
    bool has_layout() const { return _has_layout; }
    const char* name() const { return _name; }

    // Raises if an array is read-only, or if bytes would be written twice.
    void require_target() const;
    // Whether bytes of both may be the same ones, judged by their bounds.
    bool may_overlap(const operand& other) const;
    bool may_overlap(const std::byte* data, std::size_t length) const;

    // As array's.
    int traverse(visitproc visit, void* arg) const;

private:
    void check_bounds() const;

    const char* _name;
    bool _has_layout;
    std::list<array> _arrays; // arrays do not move
    shared_layout_ptr _layout;
    std::vector<void*> _bases;
};

} // namespace ucxl::python

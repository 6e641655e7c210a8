// Host memory allocated for a layout: one region, with a part for every source that spans its bounds. A contiguous
// window can show its file at the window's own address.
//
// Invariant: base(s) + any offset within the bounds of source s lies in the region. The first described byte of every
// source is at a page boundary of the file.
//
// Huge pages (sys/pages.h) are left out where a part of it would stay untouched: where the memory is more than 16 times
// the small pages that the blocks lie in.
//
// Example: auto memory = layout_memory::allocate(*layout, huge_pages_option::possible); (*memory)->bases()[0][7] = ...;
#pragma once

#include "region.h"

#include "sys/error.h"
#include "ucs/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ucxl
{

class layout_memory
{
public:
    // Errors: no_memory (the message has the requested size), exceeds_limit (the sizes of all sources together). Throws
    // std::bad_alloc.
    static result<std::shared_ptr<const layout_memory>> allocate(const layout& layout, huge_pages_option huge_pages);
    layout_memory(const layout_memory&)            = delete;
    layout_memory& operator=(const layout_memory&) = delete;

    const std::vector<std::byte*>& bases() const { return _bases; }
    int fd() const { return _region->fd(); }
    std::uint64_t length() const { return _region->length(); } // bytes, whole pages
    // The file offset of the byte at `address` of the memory. Base addresses may lie outside the memory.
    std::int64_t file_offset(const std::byte* address) const { return address - _region->start(); }

private:
    layout_memory() = default;

    region_ptr _region;
    std::vector<std::byte*> _bases;
};

} // namespace ucxl

// Host memory allocated for a layout: one zeroed memfd, with a part for every source that spans its bounds. A peer on
// the same host can map a memfd, and a contiguous window can show it at the window's own address.
//
// Invariant: base(s) + any offset within the bounds of source s lies in the mapping. The first described byte of every
// source is at a page boundary of the file. The file is sealed at its length, so whoever maps it can touch all of it
// for as long as the mapping lasts.
//
// Huge pages (sys/pages.h) are allocated with it, which takes as long as touching all of it. They are left out where a
// part of it would stay untouched: where the memory is more than 16 times the small pages that the blocks lie in.
//
// Example: auto memory = layout_memory::allocate(*layout, huge_pages_option::possible); (*memory)->bases()[0][7] = ...;
#pragma once

#include "sys/error.h"
#include "sys/fd.h"
#include "sys/mapping.h"
#include "ucs/layout/layout.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ucxl
{

// UCX_LAYOUT_HUGE_PAGES
enum class huge_pages_option : std::uint8_t {
    possible, // if the kernel has them, and layouts are dense enough
    never,
    always, // otherwise allocation fails
};

class layout_memory
{
public:
    // Errors: no_memory (the message has the requested size), exceeds_limit (the sizes of all sources together). Throws
    // std::bad_alloc.
    static result<std::shared_ptr<const layout_memory>> allocate(const layout& layout, huge_pages_option huge_pages);
    layout_memory(const layout_memory&)            = delete;
    layout_memory& operator=(const layout_memory&) = delete;

    const std::vector<std::byte*>& bases() const { return _bases; }
    int fd() const { return _file.get(); }
    std::uint64_t length() const { return _mapping.length(); } // bytes, whole pages
    // The file offset of the byte at `address` of the memory. Base addresses may lie outside the memory.
    std::int64_t file_offset(const std::byte* address) const { return address - _mapping.start(); }

private:
    layout_memory() = default;

    owned_fd _file;
    owned_mapping _mapping;
    std::vector<std::byte*> _bases;
};

} // namespace ucxl

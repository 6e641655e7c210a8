// Host memory allocated under a layout: one memfd, zeroed, a part for every source that spans its bounds. A memfd,
// because a peer on the same host can map it and a contiguous window can show it at its own address.
//
// Invariant: base(s) + any offset within the bounds of source s is inside the mapping; the first described byte of
// every source lies on a page boundary of the file. The file is sealed at its length, so that who mapped it can touch
// all of it as long as the mapping lasts.
//
// Example: auto memory = layout_memory::allocate(*layout); (*memory)->bases()[0][offset] = ...;
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

class layout_memory
{
public:
    // Errors: no_memory (the message has the size asked for), exceeds_limit (sizes of all sources together).
    // Throws std::bad_alloc.
    static result<std::shared_ptr<const layout_memory>> allocate(const layout& of);
    layout_memory(const layout_memory&)            = delete;
    layout_memory& operator=(const layout_memory&) = delete;

    const std::vector<std::byte*>& bases() const { return _bases; }
    int fd() const { return _file.get(); }
    std::uint64_t length() const { return _mapping.length(); } // bytes, whole pages
    // Where in the file the byte at `address` of the memory is; base addresses may lie outside of it.
    std::int64_t file_offset(const std::byte* address) const { return address - _mapping.start(); }

private:
    layout_memory() = default;

    owned_fd _file;
    owned_mapping _mapping;
    std::vector<std::byte*> _bases;
};

} // namespace ucxl

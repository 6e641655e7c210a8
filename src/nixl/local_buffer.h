// The local bytes of a transfer as one buffer for UCX: contiguous memory as it is, else a window.
//
// Operations with an agent of this host may have no end, and those get a handle of the memory. Without it they would
// take a registration out of UCX's cache, and UCX ends the process if one is still taken when its context ends. What
// runs with an agent of another host is ended by UCX, which then makes the keys invalid that it has sent. It does so
// only for memory from its cache, and waits until nobody else has that; so handles have registrations of their own.
//
// Example: const local_buffer bytes{.address = at, .window = {}, .handle = map_memory(context, at, length)};
#pragma once

#include "ucx.h"

#include <ucp_layout.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

namespace ucxl::nixl
{

struct unmap_memory {
    ucp_context_h context = nullptr;
    void operator()(ucp_mem_h memory) const { ucx()->mem_unmap(context, memory); }
};

using memory_handle = std::unique_ptr<std::remove_pointer_t<ucp_mem_h>, unmap_memory>;

struct local_buffer {
    void* address = nullptr;
    std::optional<ucx_layout::window> window{}; // that shows the bytes, if they are not contiguous
    memory_handle handle{};                     // of contiguous ones, with an agent of this host; may be missing

    ucp_mem_h memh() const { return window ? window->memh() : handle.get(); }
};

// Null if UCX cannot map the memory, as read-only memory for a card that could write it. It can still be moved.
memory_handle map_memory(ucp_context_h context, void* address, std::uint64_t length);

} // namespace ucxl::nixl

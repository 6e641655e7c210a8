// Memory that one process exports and another one imports (ucp_memh_pack and ucp_mem_map with exported_memh_buffer).
//
//     send_exported(peer, memh, address, length);      the process whose memory it is
//     imported_memory memory = imported_memory::receive(peer, context);      the other one; memory.memh()
//
// Invariant: what was received is checked for its length only. UCX and the library check the handle.
#pragma once

#include "oob.h"

#include <ucp/api/ucp.h>
#include <utility>
#include <vector>

namespace ucxl::perf
{

struct exported_memory {
    std::uint64_t address = 0; // in the process whose memory it is
    std::uint64_t length  = 0;
    std::vector<std::byte> handle;

    static exported_memory create(ucp_mem_h memh, std::uint64_t address, std::uint64_t length);
    static exported_memory receive(oob_socket& peer);
    void send(oob_socket& peer) const;
};

class imported_memory
{
public:
    static imported_memory create(ucp_context_h context, const exported_memory& exported);

    imported_memory() = default;
    imported_memory(imported_memory&& other) noexcept { swap(other); }
    imported_memory& operator=(imported_memory&& other) noexcept
    {
        swap(other);
        return *this;
    }
    ~imported_memory()
    {
        if (_memh != nullptr) {
            ucp_mem_unmap(_context, _memh);
        }
    }

    ucp_mem_h memh() const { return _memh; }

private:
    void swap(imported_memory& other) noexcept
    {
        std::swap(_context, other._context);
        std::swap(_memh, other._memh);
    }

    ucp_context_h _context = nullptr;
    ucp_mem_h _memh        = nullptr;
};

} // namespace ucxl::perf

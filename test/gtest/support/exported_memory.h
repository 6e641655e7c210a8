// Memory of one function of the device that another one uses, by calls of stock UCP: exported here, imported there.
//
// Example:
//     plain_buffer buffer(host); const auto packed = exported(buffer.memh());
//     imported_memory imported(dpu, packed); check_ok(imported.status(), "import");
#pragma once

#include "ucp.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ucxl::test
{

// The bytes of ucp_memh_pack with UCP_MEMH_PACK_FLAG_EXPORT; empty if it failed.
std::vector<std::byte> exported(ucp_mem_h memh);
// Whether the handle is of this library, not of stock UCX.
bool is_of_the_library(std::span<const std::byte> packed);

// Registered memory of its own pages, which UCX's cache does not know from an earlier life.
class plain_buffer
{
public:
    explicit plain_buffer(ucp_context_h context, std::size_t length = 4096);
    ~plain_buffer();
    plain_buffer(const plain_buffer&)            = delete;
    plain_buffer& operator=(const plain_buffer&) = delete;

    ucp_mem_h memh() const { return _memh; }
    std::byte* address() const { return _bytes.data(); }
    std::span<std::byte> bytes() const { return _bytes; }
    // Its registration ends with UCX's next one, or at once if the cache is off.
    void unmap();

private:
    ucp_context_h _context;
    std::span<std::byte> _bytes;
    ucp_mem_h _memh = nullptr;
};

class imported_memory
{
public:
    imported_memory(ucp_context_h context, std::span<const std::byte> packed);
    ~imported_memory();
    imported_memory(const imported_memory&)            = delete;
    imported_memory& operator=(const imported_memory&) = delete;

    ucs_status_t status() const { return _status; }
    ucp_mem_h get() const { return _memh; }

private:
    ucp_context_h _context;
    ucp_mem_h _memh = nullptr;
    ucs_status_t _status;
};

} // namespace ucxl::test

// Memory handles and keys of a DPU process.
//
//     imported_buffer sent(context, handles);      memory of a host
//     const remote_key there(endpoint, key);       memory of another one
//     ucp_get_nbx(endpoint, sent.address(), sent.length(), address, there.get(), &sent.param());
#pragma once

#include "temporary_buffer.h"

#include <string>
#include <ucp/api/ucp.h>

namespace examples
{

class memory_handle
{
public:
    memory_handle(ucp_context_h context, const ucp_mem_map_params_t& params);
    ~memory_handle();
    memory_handle(const memory_handle&)            = delete;
    memory_handle& operator=(const memory_handle&) = delete;

    ucp_mem_h get() const { return _memh; }
    // Of ucp_rkey_pack: for whoever has an endpoint to this process.
    std::string packed_key() const;

private:
    ucp_context_h _context;
    ucp_mem_h _memh = nullptr;
};

// Of this process.
class mapped_memory : public memory_handle
{
public:
    mapped_memory(ucp_context_h context, void* address, std::size_t length);
};

// Of a host. The CPU of this process must not touch it, so each request gets the handle and goes by zero copy.
class imported_buffer
{
public:
    imported_buffer(ucp_context_h context, const exported_buffer& exported);

    // As in the host.
    void* address() const { return reinterpret_cast<void*>(_address); }
    std::size_t length() const { return _length; }
    std::string packed_key() const { return _memory.packed_key(); }
    ucp_request_param_t param() const;

private:
    std::uint64_t _address;
    std::size_t _length;
    memory_handle _memory;
};

class remote_key
{
public:
    remote_key(ucp_ep_h endpoint, const std::string& packed);
    ~remote_key();
    remote_key(remote_key&& other) noexcept;
    remote_key& operator=(const remote_key&) = delete;

    ucp_rkey_h get() const { return _key; }

private:
    ucp_rkey_h _key = nullptr;
};

} // namespace examples

// Plain memory registered with stock ucp_mem_map().
#pragma once

#include <cstddef>
#include <ucp/api/ucp.h>
#include <utility>

namespace ucxl::perf
{

class registered_memory
{
public:
    static registered_memory create(ucp_context_h context, void* address, std::size_t length);

    registered_memory() = default;
    registered_memory(registered_memory&& other) noexcept
        : _context(other._context), _memh(std::exchange(other._memh, nullptr))
    {
    }
    registered_memory& operator=(registered_memory&& other) noexcept
    {
        std::swap(_context, other._context);
        std::swap(_memh, other._memh);
        return *this;
    }
    ~registered_memory()
    {
        if (_memh != nullptr) {
            ucp_mem_unmap(_context, _memh);
        }
    }

    // NULL if nothing was registered.
    ucp_mem_h memh() const { return _memh; }

private:
    ucp_context_h _context = nullptr;
    ucp_mem_h _memh        = nullptr;
};

} // namespace ucxl::perf

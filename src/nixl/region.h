// Memory that an agent has registered, its own or another one's.
//
// A region of this process is shared with the processes of the host if it can be: if it is a shared mapping of a file
// already, or if the settings allow it to be moved into one (see docs/shared-memory.md). Else its windows are carried
// by the other ways that UCP and the library have.
#pragma once

#include "message.h"

#include <ucp_layout.hpp>

#include <memory>

namespace ucxl::nixl
{

enum class sharing { never, mapped, move }; // which memory is shared; "mapped": what is a shared mapping already

class region
{
public:
    // Sharing that fails is no error: the region is then not shared, and the reason can be asked for.
    region(std::uint64_t id, void* address, std::size_t length, sharing how);

    const region_info& info() const { return _info; }
    std::byte* address() const { return reinterpret_cast<std::byte*>(_info.address); }
    bool is_shared() const { return _memory.has_value(); }
    const std::string& reason() const { return _reason; }

    // The program takes the memory back. It is not touched afterwards.
    void end()
    {
        _memory.reset();
        _is_registered = false;
    }
    bool is_registered() const { return _is_registered; }

private:
    void share(std::span<std::byte> bytes, sharing how);

    region_info _info;
    std::optional<ucx_layout::memory> _memory;
    std::string _reason;
    bool _is_registered = true;
};

} // namespace ucxl::nixl

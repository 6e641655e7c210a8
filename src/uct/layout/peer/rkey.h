// The remote keys of lay_shm and lay_cma as UCP passes them: the same bytes; each component takes the keys of its own
// access.
#pragma once

#include "import.h"

#include "abi/uct.h"

namespace ucxl
{

// Handle and key are the imported window. Every refusal is UNREACHABLE, so that UCP continues without the domain for
// this key, whatever is wrong with it.
ucs_status_t unpack_shm_key(const char* component, shm_access access, const void* buffer, uct_rkey_t* rkey,
                            void** handle);
ucs_status_t release_shm_key(uct_component* component, uct_rkey_t rkey, void* handle);

inline const imported_window& window_of(uct_rkey_t rkey)
{
    return *reinterpret_cast<const imported_window*>(rkey);
}

// Whether [address, address + length) is inside the remote window.
inline bool is_inside(const imported_window& imported, std::uint64_t address, std::size_t length)
{
    const std::uint64_t offset = address - imported.key.address;
    return offset <= imported.key.length && length <= imported.key.length - offset;
}

} // namespace ucxl

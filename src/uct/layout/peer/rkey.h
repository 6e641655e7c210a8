// Remote keys of lay_shm and lay_cma as UCP hands them around: the same bytes, each component taking those of its own
// access.
#pragma once

#include "import.h"

#include "uct/abi/uct_abi_1_18.h"

namespace ucxl
{

// The handle and the key are the imported window. Every refusal is UNREACHABLE: UCP then goes on without the domain for
// this key, whatever is wrong with it.
ucs_status_t unpack_shm_key(const char* component, shm_access access, const void* buffer, uct_rkey_t* rkey,
                            void** handle);
ucs_status_t release_shm_key(uct_component* component, uct_rkey_t rkey, void* handle);

inline const imported_window& window_of(uct_rkey_t rkey)
{
    return *reinterpret_cast<const imported_window*>(rkey);
}

// Whether [address, address + length) is inside the remote window.
inline bool is_inside(const imported_window& in, std::uint64_t address, std::size_t length)
{
    const std::uint64_t offset = address - in.key.address;
    return offset <= in.key.length && length <= in.key.length - offset;
}

} // namespace ucxl

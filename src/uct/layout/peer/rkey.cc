#include "rkey.h"

#include "ucs/sys/status.h"

#include <cstring>

namespace ucxl
{

ucs_status_t unpack_shm_key(const char* component, shm_access access, const void* buffer, uct_rkey_t* rkey,
                            void** handle)
{
    const auto status = guarded(component, [&] {
        shm_key key;
        std::memcpy(&key, buffer, sizeof(key));
        if (key.access != access) {
            return UCS_ERR_UNREACHABLE;
        }
        // A rendezvous unpacks a key for each message.
        if (imported_window* const known = find_imported(key)) {
            *rkey   = reinterpret_cast<uct_rkey_t>(known);
            *handle = known;
            return UCS_OK;
        }
        const auto own = process_identity::own();
        if (!may_share_memory(own, key.owner) || key.owner.pid == own.pid) {
            ucs_debug("%s: the remote key is of a process that shares no memory with this one", component);
            return UCS_ERR_UNREACHABLE;
        }
        const auto window = import_window(key);
        if (!window) {
            ucs_debug("%s: the remote key is refused: %s", component, window.error().message.c_str());
            return UCS_ERR_UNREACHABLE;
        }
        *rkey   = reinterpret_cast<uct_rkey_t>(*window);
        *handle = *window;
        return UCS_OK;
    });
    return status == UCS_OK ? UCS_OK : UCS_ERR_UNREACHABLE;
}

ucs_status_t release_shm_key(uct_component*, uct_rkey_t, void* handle)
{
    release_window(static_cast<imported_window*>(handle));
    return UCS_OK;
}

} // namespace ucxl

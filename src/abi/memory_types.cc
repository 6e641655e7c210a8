#include "memory_types.h"

#include "uct_forms.h"
#include "ucx.h"

namespace ucxl::abi
{

namespace
{

// A lookup makes the cache. An update does nothing until UCX has made it.
ucs_status_t look_up(const void* address, memory_info_1_22& info)
{
    using lookup        = ucs_status_t (*)(const void* address, std::size_t length, memory_info_1_22* info);
    const auto function = find_function<lookup>("ucs_memtype_cache_lookup");
    return function != nullptr ? function(address, 1, &info) : UCS_ERR_UNSUPPORTED;
}

} // namespace

void announce_memory(const void* address, std::size_t length, ucs_memory_type_t type)
{
    memory_info_1_22 unused{};
    if (look_up(address, unused) == UCS_ERR_UNSUPPORTED) {
        return;
    }
    // Without the flag, UCX would not trust the entry and ask all memory domains at each lookup.
    find_function<memtype_cache_update>("ucs_memtype_cache_update")(address, length, type, UCS_SYS_DEVICE_ID_UNKNOWN,
                                                                    memory_is_registrable);
}

void forget_memory(const void* address, std::size_t length)
{
    using remove          = void (*)(const void* address, std::size_t length);
    void** const instance = find_object<void*>("ucs_memtype_cache_global_instance");
    if (instance != nullptr && *instance != nullptr) {
        find_function<remove>("ucs_memtype_cache_remove")(address, length);
    }
}

bool is_known_as(ucs_memory_type_t type, const void* address)
{
    memory_info_1_22 info{};
    return look_up(address, info) == UCS_OK && info.type == type;
}

} // namespace ucxl::abi

// Distributions have releases of UCX without transports for network cards, and tests that need them are skipped there.
#pragma once

#include <filesystem>

#include <dlfcn.h>

#include <uct/api/uct.h>

namespace ucxl::test
{

inline bool ucx_has_network_cards()
{
    Dl_info object{};
    if (dladdr(reinterpret_cast<const void*>(&uct_query_components), &object) == 0) {
        return false;
    }
    return std::filesystem::exists(std::filesystem::path(object.dli_fname).parent_path() / "ucx/libuct_ib.so.0");
}

} // namespace ucxl::test

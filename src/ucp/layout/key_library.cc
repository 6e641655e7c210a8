#include "key_library.h"

#include "sys/search_order.h"

#include <string>

#include <dlfcn.h>

namespace ucxl
{

void* open_key_library()
{
    constexpr const char* name = "libuct_mlx5_layout.so.1"; // UCT_MLX5_LAYOUT_LIBVERSION
    const std::string own      = file_of(reinterpret_cast<const void*>(&open_key_library));
    const std::string folder   = own.substr(0, own.rfind('/') + 1);
    void* const beside         = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    return beside != nullptr ? beside : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

} // namespace ucxl

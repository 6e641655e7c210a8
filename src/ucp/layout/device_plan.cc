// ucp_layout_print_device asks libuct_mlx5_layout, which exists only where rdma-core does.
#include "handle.h"
#include "key_library.h"
#include "ucs/layout/wire.h"
#include "ucs/sys/argument.h"

#include <dlfcn.h>

#include <cstddef>
#include <vector>

using namespace ucxl;

namespace
{

// Declared in uct_mlx5_layout.h, which needs the headers of rdma-core.
using explain_function = ucs_status_t (*)(const char* device, const void* wire, std::size_t length, FILE* stream);
using print_function   = ucs_status_t (*)(const char* device, FILE* stream);

// Null after logging why.
template <typename Function>
Function find_function(const char* name)
{
    void* const opened = open_key_library();
    if (opened == nullptr) {
        ucs_error("ucp_layout_print_device: layout keys are not installed: %s", dlerror());
        return nullptr;
    }
    const auto found = reinterpret_cast<Function>(dlsym(opened, name));
    if (found == nullptr) {
        ucs_error("ucp_layout_print_device: %s", dlerror());
    }
    return found;
}

ucs_status_t print_device(const char* device, FILE* stream)
{
    const auto print = find_function<print_function>("uct_mlx5_layout_print_device");
    return print == nullptr ? UCS_ERR_UNSUPPORTED : print(device, stream);
}

ucs_status_t print_plan(const layout& layout, const char* device, FILE* stream)
{
    const auto explain = find_function<explain_function>("uct_mlx5_layout_explain");
    if (explain == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    std::vector<std::byte> wire(wire_length(layout));
    if (const auto packed = pack_wire(layout, wire); !packed) {
        return log_error("ucp_layout_print_device", packed.error());
    }
    return explain(device, wire.data(), wire.size(), stream);
}

} // namespace

ucs_status_t ucp_layout_print_device(ucp_layout_h layout, const char* device, FILE* stream)
{
    return checked(__func__, {{"stream", stream}}, [&] {
        return layout == nullptr ? print_device(device, stream) : print_plan(*layout->value, device, stream);
    });
}

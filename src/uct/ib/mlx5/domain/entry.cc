// The entry of libucp_layout into this library: puts the layer before the component "ib" of UCX.
#include "config.h"

#include "abi/log.h"
#include "abi/ucx.h"
#include "device_window_keys.h"
#include "domain_options.h"
#include "key_mark.h"
#include "unreachable_memory.h"
#include "window_domain.h"

#include <exception>
#include <format>
#include <string_view>

#include <infiniband/mlx5dv.h>

namespace ucxl::mlx5
{

namespace
{

const window_directory* windows = nullptr;

// The domains of other devices stay as they are, and so do all if the structure in memory is not the one we know.
std::unique_ptr<abi::domain_layer> open_layer(const abi::stock_domain& stock, const char* name)
{
    const auto [pd, context] = abi::ib_handles_of(stock.md());
    if (pd == nullptr || context == nullptr || pd->context != context ||
        std::string_view(ibv_get_device_name(context->device)) != name) {
        ucs_warn("%s: windows get no hardware keys: this UCX keeps its domains in a form that is not known", name);
        return nullptr;
    }
    if (!mlx5dv_is_supported(context->device)) {
        return nullptr;
    }
    return std::make_unique<window_domain>(stock, pd, name, *windows);
}

ucs_status_t unpack_key(std::uint64_t& key)
{
    const auto host = host_of(key);
    if (!host) {
        return UCS_OK;
    }
    const auto choice = same_host();
    const bool is_unwanted =
        choice == same_host_option::never || (choice == same_host_option::automatic && windows->has_host_transport());
    const bool is_refused = *host == no_host || (*host == this_host() && is_unwanted);
    if (is_refused) {
        return UCS_ERR_UNREACHABLE;
    }
    key = unmarked_key(key);
    return UCS_OK;
}

} // namespace

result<window_keys*> attach(std::string_view version, const window_directory& directory, const void* libucp)
{
    if (version != PACKAGE_VERSION) {
        return fail(errc::unsupported,
                    std::format("libucp_layout is of version {}, libuct_mlx5_layout of {}", version, PACKAGE_VERSION));
    }
    UCXL_TRY(abi::attach(libucp));
    windows = &directory;
    if (!abi::add_layers("ib", {.open   = open_layer,
                                .unpack = unpack_key,
                                .zcopy  = {.is_needed = has_unreachable_memory, .run = run_with_copies}})) {
        return fail(errc::no_device, "this UCX has no component \"ib\"");
    }
    return &device_window_keys::instance();
}

} // namespace ucxl::mlx5

extern "C" [[gnu::visibility("default")]] ucxl::window_keys*
ucxl_mlx5_window_keys(const char* version, const ucxl::window_directory& directory, const void* libucp,
                      std::string* reason)
{
    try {
        const auto attached = ucxl::mlx5::attach(version, directory, libucp);
        if (!attached) {
            *reason = attached.error().message;
        }
        return attached.value_or(nullptr);
    } catch (const std::exception& failure) {
        *reason = failure.what();
        return nullptr;
    }
}

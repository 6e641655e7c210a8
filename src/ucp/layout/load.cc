// Binds the shared library to UCX and registers it there, so that a program needs to do nothing else.
//
// The library is not linked with UCX, so UCX need not be there when it is loaded. It comes in by whichever of these
// happens first:
//   constructor             the program, or a library that it is linked with, has loaded UCX already
//   ucs_module_global_init  UCX itself loads the library as a plug-in
//   ucp_init_version        the library was preloaded, and something that the program opens later brings its own UCX
#include "context.h"
#include "hardware_keys.h"
#include "options.h"
#include "ucp_layout.h"

#include "abi/library.h"
#include "abi/log.h"
#include "abi/ucx.h"
#include "sys/search_order.h"
#include "uct/layout/init.h"

#include <ucp/api/ucp.h>

#include <atomic>
#include <exception>
#include <string>

#include <dlfcn.h>

namespace
{

using namespace ucxl;

void bind_to_ucx(const void* caller)
{
    if (uct_layout_init(caller)) {
        register_map_options();
        watch_for_devices();
    }
}

// Out of memory while loading: the program continues as if the library were absent.
template <typename Body>
void without_exceptions(Body&& body) noexcept
{
    try {
        body();
    } catch (const std::exception&) {
        return;
    }
}

// Whether the program itself or a preload brought this library, and not UCX as a plug-in.
bool is_in_global_scope()
{
    return dlsym(RTLD_DEFAULT, "ucp_layout_get_version") == reinterpret_cast<void*>(&ucp_layout_get_version);
}

// Runs after the dynamic initialisers of this library (default priority) and before any user code.
[[gnu::constructor]] void bind_at_load()
{
    without_exceptions([] {
        const auto libraries = abi::loaded_libucps();
        if (libraries.size() == 1 || (libraries.size() > 1 && is_in_global_scope())) {
            bind_to_ucx(nullptr);
        } else if (libraries.empty()) {
            if (const auto file = abi::libuct_alone(); !file.empty()) {
                ucs_warn("libuct is loaded without libucp (%s): windows need UCP, so there are none. Link the program "
                         "with libucp",
                         file.c_str());
            }
        }
    });
}

// Whether windows work in this UCX. Says once if they work in another one of the process.
bool is_attached(const std::string& file)
{
    static std::atomic<bool> is_told{false};
    if (abi::attached() == nullptr || file == abi::attached_file()) {
        return abi::attached() != nullptr;
    }
    if (!is_told.exchange(true)) {
        ucs_warn("this process has two UCXs: windows work with %s only; %s runs on without them",
                 abi::attached_file().c_str(), file.c_str());
    }
    return false;
}

} // namespace

extern "C" {

// The entry of a plug-in of UCX. Its caller tells which UCX that is.
[[gnu::visibility("default")]] ucs_status_t ucs_module_global_init();

ucs_status_t ucs_module_global_init()
{
    const void* const caller = __builtin_return_address(0);
    bool is_usable           = false;
    without_exceptions([&] {
        bind_to_ucx(caller);
        const auto library = abi::choose_library(caller);
        is_usable          = library && is_attached(library->file);
    });
    return is_usable ? UCS_OK : UCS_ERR_UNSUPPORTED;
}

// Stands before UCX's function in programs that preload the library or are linked with it before libucp.
[[gnu::visibility("default")]] ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version,
                                                             const ucp_params_t* params, const ucp_config_t* config,
                                                             ucp_context_h* context_p)
{
    decltype(&ucp_init_version) next = nullptr;
    bool is_foreign                  = false;
    const void* const caller         = __builtin_return_address(0);
    without_exceptions([&] {
        void* const found = abi::next_function("ucp_init_version", reinterpret_cast<void*>(&ucp_init_version), caller);
        next              = reinterpret_cast<decltype(&ucp_init_version)>(found);
        if (found != nullptr) {
            bind_to_ucx(caller);
            is_foreign = !is_attached(file_of(found)) && abi::attached() != nullptr;
        }
    });
    if (next == nullptr) {
        ucs_error("ucp_init: no UCX is loaded in this process: link the program with libucp");
        return UCS_ERR_NO_DEVICE;
    }
    // Nobody else can see the windows of a UCX that this library does not work with.
    const bool is_watched = !is_foreign && abi::attached() != nullptr;
    return is_watched
               ? init_watched_context(next, caller, api_major_version, api_minor_version, params, config, context_p)
               : next(api_major_version, api_minor_version, params, config, context_p);
}
}

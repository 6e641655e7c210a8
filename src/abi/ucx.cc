#include "ucx.h"

#include "imports.h"
#include "library.h"
#include "log.h"

#include <atomic>
#include <mutex>

#include <dlfcn.h>
#include <ucs/type/class.h>

namespace ucxl::abi
{

namespace
{

struct binding {
    std::mutex lock;
    std::atomic<void*> handle{nullptr}; // of libucp, or of libucs alone
    std::atomic<const form*> chosen{nullptr};
    std::string file;
};

// Never destroyed: UCX calls us until the process ends.
binding& state()
{
    static binding& only = *new binding;
    return only;
}

ucx_facts facts_of(const ucx_library& library)
{
    ucx_facts facts{};
    facts.file = library.file;
    const auto get_version =
        reinterpret_cast<void (*)(unsigned*, unsigned*, unsigned*)>(dlsym(library.handle, "ucp_get_version"));
    get_version(&facts.major, &facts.minor, &facts.release);
    for (std::size_t i = 0; i < markers.size(); ++i) {
        facts.exported |= dlsym(library.handle, markers[i]) != nullptr ? 1u << i : 0u;
    }
    const auto size_of = [&](const char* name) {
        const auto* const object = static_cast<const ucs_class_t*>(dlsym(library.handle, name));
        return object != nullptr ? object->size : 0;
    };
    facts.base_iface_length = size_of("uct_base_iface_t_class");
    facts.base_ep_length    = size_of("uct_base_ep_t_class");
    return facts;
}

void bind_to(void* handle)
{
    state().handle = handle;
    bind_log();
    if (bind_imports != nullptr) {
        bind_imports(handle);
    }
}

} // namespace

result<const form*> attach(const void* caller)
{
    if (const form* const form = attached()) {
        return form;
    }
    binding& own = state();
    const std::lock_guard guard(own.lock);
    if (const form* const form = attached()) {
        return form;
    }
    const auto library = UCXL_TRY(choose_library(caller));
    bind_to(library.handle); // before the check, so that a refusal is logged by UCX
    const form* const form = UCXL_TRY(choose_form(facts_of(library)));
    own.file               = library.file;
    own.chosen             = form;
    return form;
}

result<void> attach_libucs()
{
    binding& own = state();
    const std::lock_guard guard(own.lock);
    if (own.handle != nullptr) {
        return {};
    }
    if (const auto library = choose_library()) {
        bind_to(library->handle);
        return {};
    }
    const auto loaded  = libraries_with("ucs_log_dispatch", "libucs");
    void* const handle = loaded.empty() ? dlopen("libucs.so.0", RTLD_LAZY | RTLD_LOCAL) : loaded.front().handle;
    if (handle == nullptr) {
        return fail(errc::no_device, std::format("libucs could not be loaded: {}", dlerror()));
    }
    bind_to(handle);
    return {};
}

const form* attached()
{
    return state().chosen.load(std::memory_order_acquire);
}

const std::string& attached_file()
{
    return state().file;
}

void* find_symbol(const char* name)
{
    void* const handle = state().handle;
    return handle != nullptr ? dlsym(handle, name) : nullptr;
}

} // namespace ucxl::abi

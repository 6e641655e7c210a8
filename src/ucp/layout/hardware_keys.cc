#include "config.h"

#include "hardware_keys.h"

#include "abi/component.h"
#include "abi/library.h"
#include "abi/log.h"
#include "abi/ucx.h"
#include "abi/window_types.h"
#include "key_library.h"
#include "options.h"
#include "ucs/window/domain_query.h"
#include "uct/layout/copy/md.h"
#include "uct/layout/peer/iface.h"
#include "uct/layout/shm/lay_shm.h"
#include "window_figures.h"

#include <atomic>
#include <exception>
#include <mutex>

#include <dlfcn.h>
#include <pthread.h>

namespace ucxl
{

namespace
{

struct opened_library {
    std::mutex lock;
    bool is_tried = false;
    std::atomic<window_keys*> keys{nullptr};
    std::string reason = "UCX has not opened its devices yet";
};

opened_library& state()
{
    static opened_library& only = *new opened_library;
    return only;
}

bool touches_arena(const void* address, std::uint64_t length)
{
    return window_registry::instance().touches_arena(address, length);
}

bool find_window(const void* address, window_content& content)
{
    const reader_section section;
    const window* const found = window_registry::instance().find(address, 0);
    if (found == nullptr || (found->length() > 0 && address == found->address() + found->length())) {
        return false;
    }
    content = content_of(*found);
    return true;
}

bool note_registration(const void* domain, void* address, std::uint64_t length)
{
    domain_query* const query = domain_query::current();
    if (query != nullptr) {
        query->found.with_keys.push_back(domain);
    } else {
        window_registry::instance().note_registration(address, length);
    }
    return query == nullptr;
}

std::uint64_t types_of_copied_windows()
{
    const auto types = abi::types_of_windows();
    return types.served & ~UCS_BIT(UCS_MEMORY_TYPE_RDMA);
}

result<std::byte*> reserve_addresses(std::uint64_t length, const indirect_memory& memory)
{
    const window* const created = UCXL_TRY(window_registry::instance().create_indirect(length, memory));
    return created->address();
}

void free_addresses(const std::byte* address)
{
    const window* freed = nullptr;
    {
        const reader_section section;
        freed = window_registry::instance().find(address, 1);
    }
    window_registry::instance().destroy(const_cast<window*>(freed));
}

result<void> set_foreign(const foreign_memory& memory)
{
    window_registry::instance().set_foreign(memory);
    return window_registry::instance().reserve();
}

bool holds_windows(const void* address, std::uint64_t length)
{
    return window_registry::instance().holds_windows(address, length);
}

bool is_card_memory(const void* address, std::uint64_t length)
{
    const reader_section section;
    const window* const found = window_registry::instance().find(address, length);
    return found != nullptr && found->binding().indirect != nullptr;
}

std::atomic<bool> is_device_opened{false};

shown_domain* show_domain(const std::string& device)
{
    is_device_opened.store(true, std::memory_order_release);
    return window_figures::instance().show_domain(device);
}

void show_unusable(shown_domain* domain, const std::string& reason)
{
    window_figures::instance().show_unusable(*domain, reason);
}

void show_choices(shown_domain* domain, const std::string& choices)
{
    window_figures::instance().show_choices(*domain, choices);
}

void show_figures(shown_domain* domain, const domain_figures& figures)
{
    window_figures::show_figures(*domain, figures);
}

void hide_domain(shown_domain* domain)
{
    window_figures::instance().hide_domain(domain);
}

constexpr window_directory directory = {
    .in_arena           = touches_arena,
    .find               = find_window,
    .note_registration  = note_registration,
    .types_of_copied    = types_of_copied_windows,
    .reserve_addresses  = reserve_addresses,
    .free_addresses     = free_addresses,
    .set_foreign        = set_foreign,
    .holds_windows      = holds_windows,
    .is_card_memory     = is_card_memory,
    .has_host_transport = has_host_interfaces,
    .show_domain        = show_domain,
    .show_unusable      = show_unusable,
    .show_choices       = show_choices,
    .show_figures       = show_figures,
    .hide_domain        = hide_domain,
};

window_keys* open_keys(std::string& reason)
{
    if (!are_hardware_keys_enabled()) {
        reason = "UCX_LAYOUT_KEYS_ENABLE is off";
        return nullptr;
    }
    // What a device has no key for needs a memory type that no device registers.
    if (!abi::types_of_windows().staged && wanted_carrier() != window_carrier::keys) {
        reason = "no memory type is free for windows that cannot have keys (with UCX_PROTO_ENABLE=n there is none)";
        return nullptr;
    }
    if (!abi::has_component("ib")) {
        reason = "this UCX has no component for RDMA devices";
        return nullptr;
    }
    void* const library = open_key_library();
    if (library == nullptr) {
        reason = dlerror();
        return nullptr;
    }
    const auto entry = reinterpret_cast<window_keys_function>(dlsym(library, window_keys_entry));
    if (entry == nullptr) {
        reason = "libuct_mlx5_layout is of another version";
        return nullptr;
    }
    return entry(PACKAGE_VERSION, &directory, abi::find_symbol("uct_query_components"), &reason);
}

// Runs while UCX asks its components for their devices, before it opens any.
void open_once() noexcept
{
    auto& opened = state();
    const std::lock_guard guard(opened.lock);
    if (opened.is_tried) {
        return;
    }
    opened.is_tried = true;
    try {
        std::string reason;
        opened.keys   = open_keys(reason);
        opened.reason = reason;
        ucs_debug("hardware keys for windows: %s", opened.keys != nullptr ? "yes" : reason.c_str());
    } catch (const std::exception& failure) {
        ucs_debug("hardware keys for windows: %s", failure.what());
    }
}

} // namespace

void watch_for_devices()
{
    leave_rdma_memory_to([] {
        const window_keys* const keys = hardware_keys();
        return keys != nullptr && keys->has_card_memory();
    });
    on_device_query(open_once);
    // The queue pairs and doorbells are the parent's. A child leaves them, and its windows have no keys.
    pthread_atfork(nullptr, nullptr, [] { state().keys = nullptr; });
}

window_content content_of(const window_binding& binding)
{
    return {.address = nullptr,
            .length  = binding.plan->packed_length(),
            .shape   = binding.plan->source_layout(),
            .bases   = binding.bases};
}

window_content content_of(const window& window)
{
    window_content content = content_of(window.binding());
    content.address        = window.address();
    return content;
}

window_keys* hardware_keys()
{
    return state().keys.load(std::memory_order_acquire);
}

bool was_device_opened()
{
    return is_device_opened.load(std::memory_order_acquire);
}

std::string why_no_hardware_keys()
{
    auto& opened = state();
    const std::lock_guard guard(opened.lock);
    return opened.reason;
}

} // namespace ucxl

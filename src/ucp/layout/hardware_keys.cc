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

// inherited: in a child whose parent has opened it, or was about to.
enum class progress : unsigned char { closed, opening, opened, inherited };

struct opened_library {
    std::mutex lock; // from `opening` on
    std::atomic<progress> done{progress::closed};
    std::atomic<window_keys*> keys{nullptr};
    std::string reason; // set before `opened`
};

opened_library& state()
{
    static opened_library& only = *new opened_library;
    return only;
}

std::atomic<bool> is_device_opened{false};

class directory_of_windows final : public window_directory
{
public:
    bool in_arena(const void* address, std::uint64_t length) const override
    {
        return _registry.touches_arena(address, length);
    }

    std::optional<window_content> find(const void* address) const override
    {
        const reader_section section;
        const window* const found = _registry.find(address, 0);
        const bool is_inside =
            found != nullptr && (found->length() == 0 || address != found->address() + found->length());
        return is_inside ? std::optional(content_of(*found)) : std::nullopt;
    }

    bool note_registration(const void* domain, void* address, std::uint64_t length) const override
    {
        domain_query* const query = domain_query::current();
        if (query != nullptr) {
            query->found.with_keys.push_back(domain);
        } else {
            _registry.note_registration(address, length);
        }
        return query == nullptr;
    }

    std::uint64_t types_of_copied() const override
    {
        return abi::types_of_windows().served & ~UCS_BIT(UCS_MEMORY_TYPE_RDMA);
    }

    result<std::byte*> reserve_addresses(std::uint64_t length, const indirect_memory& memory) const override
    {
        const window* const created = UCXL_TRY(_registry.create_indirect(length, memory));
        return created->address();
    }

    void free_addresses(const std::byte* address) const override
    {
        const window* freed = nullptr;
        {
            const reader_section section;
            freed = _registry.find(address, 1);
        }
        _registry.destroy(const_cast<window*>(freed));
    }

    address_range addresses_of_arena() const override { return _registry.addresses_of_arena(); }

    result<void> set_foreign(const foreign_memory& memory) const override
    {
        _registry.set_foreign(memory);
        return _registry.reserve();
    }

    bool holds_windows(const void* address, std::uint64_t length) const override
    {
        return _registry.holds_windows(address, length);
    }

    bool is_card_memory(const void* address, std::uint64_t length) const override
    {
        const reader_section section;
        const window* const found = _registry.find(address, length);
        return found != nullptr && found->binding().indirect != nullptr;
    }

    bool has_host_transport() const override { return has_host_interfaces(); }

    std::unique_ptr<shown_domain> show_domain(const std::string& device) const override
    {
        is_device_opened.store(true, std::memory_order_release);
        return window_figures::instance().show_domain(device);
    }

private:
    window_registry& _registry = window_registry::instance();
};

const window_directory& the_directory()
{
    static const directory_of_windows only;
    return only;
}

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
    return entry(PACKAGE_VERSION, the_directory(), abi::find_symbol("uct_query_components"), &reason);
}

// Runs while UCX asks its components for their devices, before it opens any.
void open_once() noexcept
{
    auto& opened     = state();
    progress reached = progress::closed;
    // A child does not wait for a lock that it may have inherited.
    if (!opened.done.compare_exchange_strong(reached, progress::opening) && reached != progress::opening) {
        return;
    }
    const std::lock_guard guard(opened.lock);
    if (opened.done.load(std::memory_order_relaxed) != progress::opening) {
        return;
    }
    try {
        std::string reason;
        opened.keys   = open_keys(reason);
        opened.reason = reason;
        ucs_debug("hardware keys for windows: %s", opened.keys != nullptr ? "yes" : reason.c_str());
    } catch (const std::exception& failure) {
        ucs_debug("hardware keys for windows: %s", failure.what());
    }
    opened.done.store(progress::opened, std::memory_order_release);
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
    pthread_atfork(nullptr, nullptr, [] {
        state().keys = nullptr;
        if (state().done != progress::closed) {
            state().done = progress::inherited;
        }
    });
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
    const auto& opened = state();
    switch (opened.done.load(std::memory_order_acquire)) {
    case progress::opened:
        return opened.reason;
    case progress::inherited:
        return "a process that was forked has no keys";
    case progress::closed:
    case progress::opening:
        break;
    }
    return "UCX has not opened its devices yet";
}

} // namespace ucxl

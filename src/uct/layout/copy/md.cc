#include "md.h"

#include "abi/window_types.h"
#include "ucs/window/domain_query.h"
#include "ucs/window/window.h"
#include "uct/layout/base/md.h"

#include <array>
#include <atomic>
#include <new>

namespace ucxl
{

namespace
{

// Every registration returns the address of this byte. UCP reads null as "not registered".
char registered;

class callback_list
{
public:
    bool add(md_close_callback callback)
    {
        for (auto& place : _places) {
            md_close_callback expected = nullptr;
            if (place.compare_exchange_strong(expected, callback)) {
                return true;
            }
        }
        return false;
    }

    void call(const void* md) const
    {
        for (const auto& place : _places) {
            if (const md_close_callback callback = place.load(); callback != nullptr) {
                callback(md);
            }
        }
    }

private:
    std::array<std::atomic<md_close_callback>, max_md_close_callbacks> _places{};
};

callback_list close_callbacks;
callback_list last_interface_callbacks;

std::atomic<void (*)()> device_query_callback{nullptr};

void queried()
{
    if (const auto callback = device_query_callback.load(); callback != nullptr) {
        callback();
    }
}

struct layout_md {
    abi::domain super;
    std::atomic<bool> had_interface;
    std::atomic<unsigned> open_interfaces;
};

layout_md& self_of(uct_md_h md)
{
    return *reinterpret_cast<layout_md*>(md);
}

// ucp_init opens the domain of every component, and closes it at once if UCX_TLS allows none of its transports.
struct last_domain {
    const void* opened = nullptr;
    bool left_out      = false;
};

thread_local last_domain last;

void close(uct_md_h md)
{
    if (md == last.opened) {
        last.left_out = !self_of(md).had_interface.load(std::memory_order_relaxed);
    }
    close_callbacks.call(md);
    delete &self_of(md);
}

abi::domain_attr query()
{
    const abi::window_types& types = abi::types_of_windows();
    // No NEED_RKEY, so that UCP registers nothing when it stages a window through lay_copy.
    return {
        .flags            = UCT_MD_FLAG_REG,
        .reg_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST) | types.served,
        .detect_mem_types = types.own(),
        .access_mem_types = types.served,
    };
}

ucs_status_t mem_reg(uct_md_h md, void* address, std::size_t length, const abi::mem_reg_params*, uct_mem_h* memh)
{
    if (domain_query* const query = domain_query::current()) {
        query->found.copying = md;
    } else {
        window_registry::instance().note_registration(address, length);
    }
    *memh = &registered;
    return UCS_OK;
}

ucs_status_t mkey_pack(uct_md_h, uct_mem_h, void*, std::size_t, const abi::mkey_pack_params*, void*)
{
    return UCS_OK;
}

bool detect(const void* address, ucs_memory_type_t& type)
{
    const auto& registry = window_registry::instance();
    if (!registry.touches_arena(address, 1)) {
        return false;
    }
    type = registry.memory_type_at(address);
    return true;
}

constexpr abi::domain_operations operations = {
    .close     = close,
    .query     = query,
    .mem_reg   = mem_reg,
    .mem_dereg = base_md_mem_dereg,
    .mkey_pack = mkey_pack,
    .detect    = detect,
};

ucs_status_t md_open(uct_component* component, const char*, const uct_md_config_t*, uct_md_h* md)
{
    auto* const created = new (std::nothrow) layout_md{};
    if (created == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    init_domain(created->super, operations, component);
    last = {.opened = created, .left_out = false};
    *md  = &created->super.super;
    return UCS_OK;
}

// UCX unpacks no key of a domain that needs none.
ucs_status_t rkey_unpack(uct_component*, const void*, uct_rkey_t* rkey, void** handle)
{
    *rkey   = UCT_INVALID_RKEY;
    *handle = nullptr;
    return UCS_OK;
}

ucs_status_t rkey_release(uct_component*, uct_rkey_t, void*)
{
    return UCS_OK;
}

} // namespace

void note_interface(uct_md_h md)
{
    self_of(md).had_interface.store(true, std::memory_order_relaxed);
    ++self_of(md).open_interfaces;
}

void note_interface_close(uct_md_h md)
{
    if (--self_of(md).open_interfaces == 0) {
        last_interface_callbacks.call(md);
    }
}

bool has_interfaces(const void* md)
{
    return static_cast<const layout_md*>(md)->open_interfaces != 0;
}

bool is_lay_copy_left_out()
{
    return last.left_out;
}

constinit abi::component layout_component({
    .name         = "layout",
    .md_open      = md_open,
    .rkey_unpack  = rkey_unpack,
    .rkey_release = rkey_release,
    .md_options   = {"layout memory domain", "LAYOUT_", base_md_options, base_md_options_length},
    .queried      = queried,
});

void on_device_query(void (*callback)())
{
    device_query_callback = callback;
}

bool on_md_close(md_close_callback callback)
{
    return close_callbacks.add(callback);
}

bool on_last_interface_close(md_close_callback callback)
{
    return last_interface_callbacks.add(callback);
}

} // namespace ucxl

// Components and transports of ours, as the attached UCX registers them.
//
// Example:
//     constinit component my_component({.name = "my", .md_open = open, .rkey_unpack = unpack, ...});
//     constinit transport my_transport({.name = "my", ...});
//     register_component(my_component, my_transport);
#pragma once

#include "config.h"
#include "uct.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ucp/api/ucp_def.h>

namespace ucxl::abi
{

// Options of a domain or an interface, UCX_<prefix><name>.
struct options {
    const char* name;
    const char* prefix;
    std::span<const option> table;
    std::size_t length; // bytes of the structure with the values
};

struct component_definition {
    const char* name;
    ucs_status_t (*md_open)(uct_component* component, const char* name, const uct_md_config_t* config, uct_md_h* md);
    ucs_status_t (*rkey_unpack)(uct_component* component, const void* buffer, uct_rkey_t* rkey, void** handle);
    ucs_status_t (*rkey_release)(uct_component* component, uct_rkey_t rkey, void* handle);
    options md_options;
    // UCX asks for the devices of the component: it has loaded all components, and opened no domain since.
    void (*queried)() = nullptr;
};

// One memory domain, no connection manager. Objects have static lifetime: UCX keeps them for ever.
struct component {
    constexpr explicit component(const component_definition& own) : definition(own) {}

    uct_component super{};
    component_definition definition;
};

struct transport_definition {
    const char* name;
    ucs_status_t (*query_devices)(uct_md_h md, tl_device_resource** devices, unsigned* num_devices);
    ucs_status_t (*iface_open)(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                               const uct_iface_config_t* config, uct_iface_h* iface);
    options iface_options;
};

struct transport {
    constexpr explicit transport(const transport_definition& own) : definition(own) {}

    tl super{};
    transport_definition definition;
};

// To be called once, after attach(). Returns false, and registers nothing, if memory ran out.
bool register_component(component& component, transport& transport);

// The component of that name that UCX has loaded, or null.
uct_component* find_component(const char* name);
// The component that uct_query_components() returns at this index, or null. A context of UCP has the same order.
const uct_component* component_at(unsigned index);
// Whether a context was made by another UCX of this process. The functions of the attached one must not get it. It may
// be of any release since 1.8.
bool is_foreign(ucp_context_h context);
// Whether register_component() has registered it.
bool is_own(const uct_component* component);
// Whether UCX has loaded a component of that name.
bool has_component(const char* name);
// Names of the components that have a domain, out of those that are asked; UCX loads its components for it. One without
// a domain has no device. Empty if UCX does not say. Throws std::bad_alloc.
std::optional<std::vector<std::string>> components_with_domains(bool (*is_asked)(const std::string& name));

// One device, or UCS_ERR_NO_MEMORY.
ucs_status_t single_device(uct_md_h md, const char* name, uct_device_type_t type, tl_device_resource** devices,
                           unsigned* num_devices);

} // namespace ucxl::abi

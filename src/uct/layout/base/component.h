// Components and transports as UCX registers them: what all of ours have in common.
//
// Example:
//     constinit uct_component my_component = make_component(
//         my_component, {.name = "my", .md_open = md_open, .rkey_unpack = rkey_unpack, .rkey_release = rkey_release,
//                        .md_config = config_entry("my memory domain", "MY_", config_table, sizeof(my_md_config))});
#pragma once

#include "md.h"
#include "not_supported.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace ucxl
{

constexpr ucs_config_global_list_entry_t config_entry(const char* name, const char* prefix, ucs_config_field_t* table,
                                                      std::size_t size)
{
    return {.name = name, .prefix = prefix, .table = table, .size = size, .list = {}, .flags = 0};
}

struct component_definition {
    std::string_view name;
    decltype(uct_component::md_open) md_open;
    decltype(uct_component::rkey_unpack) rkey_unpack;
    decltype(uct_component::rkey_release) rkey_release;
    ucs_config_global_list_entry_t md_config;
};

// One memory domain, no connection manager. `component` is the object that the result initialises: its list of
// transports begins with pointers to itself.
constexpr uct_component make_component(uct_component& component, const component_definition& definition)
{
    uct_component filled = {
        .name               = {},
        .query_md_resources = uct_md_query_single_md_resource,
        .md_open            = definition.md_open,
        .cm_open            = not_supported,
        .rkey_unpack        = definition.rkey_unpack,
        .rkey_ptr           = not_supported,
        .rkey_release       = definition.rkey_release,
        .rkey_compare       = uct_base_rkey_compare,
        .md_config          = definition.md_config,
        .cm_config          = config_entry("", "", nullptr, 0),
        .tl_list            = {&component.tl_list, &component.tl_list},
        .list               = {},
        .flags              = 0,
        .md_vfs_init        = base_md_vfs_init,
    };
    std::ranges::copy(definition.name, filled.name);
    return filled;
}

constexpr abi::tl make_transport(std::string_view name, decltype(abi::tl::query_devices) query_devices,
                                 decltype(abi::tl::iface_open) iface_open, const ucs_config_global_list_entry_t& config)
{
    abi::tl transport = {
        .name = {}, .query_devices = query_devices, .iface_open = iface_open, .config = config, .list = {}};
    std::ranges::copy(name, transport.name);
    return transport;
}

} // namespace ucxl

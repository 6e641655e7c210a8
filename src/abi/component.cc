#include "component.h"

#include "refuse.h"
#include "ucx.h"

#include "sys/object_around.h"

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>

#include <uct/api/uct.h>

namespace ucxl::abi
{

namespace
{

void vfs_init(uct_md_h)
{
}

ucs_status_t unpack_1_16(uct_component* component, const void* buffer, uct_rkey_t* rkey, void** handle)
{
    return reinterpret_cast<abi::component*>(component)->definition.rkey_unpack(component, buffer, rkey, handle);
}

ucs_status_t unpack_1_19(uct_component* component, const void* buffer, const rkey_unpack_params*, uct_rkey_t* rkey,
                         void** handle)
{
    return unpack_1_16(component, buffer, rkey, handle);
}

ucs_status_t query_resources(uct_component* component, uct_md_resource_desc_t** resources, unsigned* num)
{
    static const auto query_single =
        find_function<decltype(uct_component::query_md_resources)>("uct_md_query_single_md_resource");
    const auto queried = reinterpret_cast<abi::component*>(component)->definition.queried;
    if (queried != nullptr) {
        queried();
    }
    return query_single(component, resources, num);
}

bool fill_entry(ucs_config_global_list_entry_t& entry, const options& options)
{
    entry = make_entry(options.name, options.prefix, make_fields(options.table), options.length);
    return entry.table != nullptr;
}

} // namespace

uct_component* find_component(const char* name)
{
    auto* const all = find_object<ucs_list_link_t>("uct_components_list");
    if (all != nullptr) {
        for (auto* link = all->next; link != all; link = link->next) {
            auto* const component = object_around<uct_component>(link, offsetof(uct_component, list));
            if (std::strncmp(component->name, name, sizeof(component->name)) == 0) {
                return component;
            }
        }
    }
    return nullptr;
}

bool register_component(component& component, transport& transport)
{
    uct_component& super = component.super;
    std::strncpy(super.name, component.definition.name, sizeof(super.name) - 1);
    super.query_md_resources = query_resources;
    super.md_open            = component.definition.md_open;
    super.cm_open            = refuse;
    super.rkey_unpack        = attached()->unpack_takes_params ? reinterpret_cast<void (*)()>(unpack_1_19)
                                                               : reinterpret_cast<void (*)()>(unpack_1_16);
    super.rkey_ptr           = refuse;
    super.rkey_release       = component.definition.rkey_release;
    super.rkey_compare       = find_function<decltype(super.rkey_compare)>("uct_base_rkey_compare");
    super.cm_config          = make_entry("", "", nullptr, 0);
    super.tl_list            = {&super.tl_list, &super.tl_list};
    super.md_vfs_init        = vfs_init;
    tl& own                  = transport.super;
    std::strncpy(own.name, transport.definition.name, sizeof(own.name) - 1);
    own.query_devices = transport.definition.query_devices;
    own.iface_open    = transport.definition.iface_open;
    if (!fill_entry(super.md_config, component.definition.md_options) ||
        !fill_entry(own.config, transport.definition.iface_options)) {
        return false;
    }
    uct_component_register(&super);
    uct_tl_register(&super, &own);
    return true;
}

const uct_component* component_at(unsigned index)
{
    const auto* const all = find_object<ucs_list_link_t>("uct_components_list");
    if (all != nullptr) {
        for (const auto* link = all->next; link != all; link = link->next, --index) {
            if (index == 0) {
                return object_around<uct_component>(link, offsetof(uct_component, list));
            }
        }
    }
    return nullptr;
}

// A context begins with its list of components, and each entry of that with the component. That is so since 1.8. The
// first component is one of libuct itself, so it is an object of the UCX that made the context.
bool is_foreign(ucp_context_h context)
{
    const auto* const components = *reinterpret_cast<const uct_component* const* const*>(context);
    if (components == nullptr) {
        return false;
    }
    const auto* const all = find_object<const ucs_list_link_t>("uct_components_list");
    if (all == nullptr) {
        return false;
    }
    for (const auto* link = all->next; link != all; link = link->next) {
        if (object_around<uct_component>(link, offsetof(uct_component, list)) == *components) {
            return false;
        }
    }
    return true;
}

bool is_own(const uct_component* component)
{
    return component != nullptr && component->query_md_resources == query_resources;
}

std::optional<std::vector<std::string>> components_with_domains(bool (*is_asked)(const std::string& name))
{
    const auto query            = find_function<decltype(&uct_component_query)>("uct_component_query");
    uct_component_h* components = nullptr;
    unsigned num_components     = 0;
    if (find_function<decltype(&uct_query_components)>("uct_query_components")(&components, &num_components) !=
        UCS_OK) {
        return std::nullopt;
    }
    const std::unique_ptr<uct_component_h, decltype(&uct_release_component_list)> owner(
        components, find_function<decltype(&uct_release_component_list)>("uct_release_component_list"));
    std::vector<std::string> names;
    for (const uct_component_h component : std::span(components, num_components)) {
        uct_component_attr_t attr{};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        if (query(component, &attr) != UCS_OK || !is_asked(attr.name)) {
            continue;
        }
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        if (query(component, &attr) == UCS_OK && attr.md_resource_count > 0) {
            names.emplace_back(attr.name);
        }
    }
    return names;
}

bool has_component(const char* name)
{
    return find_component(name) != nullptr;
}

ucs_status_t single_device(uct_md_h md, const char* name, uct_device_type_t type, tl_device_resource** devices,
                           unsigned* num_devices)
{
    return uct_single_device_resource(md, name, type, UCS_SYS_DEVICE_ID_UNKNOWN, devices, num_devices);
}

} // namespace ucxl::abi

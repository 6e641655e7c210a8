#include "domain_layer.h"

#include "component.h"
#include "log.h"
#include "uct_forms.h"
#include "ucx.h"

#include <cstring>
#include <exception>

namespace ucxl::abi
{

namespace
{

using alloc_1_16  = ucs_status_t (*)(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type,
                                    unsigned flags, const char* name, uct_mem_h* memh);
using alloc_1_19  = ucs_status_t (*)(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type,
                                    ucs_sys_device_t sys_device, unsigned flags, const char* name, uct_mem_h* memh);
using unpack_1_16 = ucs_status_t (*)(uct_component* component, const void* buffer, uct_rkey_t* rkey, void** handle);
using unpack_1_19 = ucs_status_t (*)(uct_component* component, const void* buffer, const rkey_unpack_params* params,
                                     uct_rkey_t* rkey, void** handle);

// What the operations of a domain point to while it has a layer.
struct layered_domain {
    uct_md_ops operations; // the first member, so that the table leads to the object
    stock_domain stock;
    std::unique_ptr<domain_layer> layer;
};

layered_domain& layered(uct_md_h md)
{
    return *reinterpret_cast<layered_domain*>(const_cast<uct_md_ops*>(md->ops));
}

domain_layer& layer_of(uct_md_h md)
{
    return *layered(md).layer;
}

template <typename Body>
ucs_status_t contained(const char* operation, Body&& body) noexcept
{
    try {
        return body();
    } catch (const std::exception& failure) {
        ucs_error("%s of a memory domain: %s", operation, failure.what());
        return UCS_ERR_NO_MEMORY;
    }
}

void close(uct_md_h md)
{
    const std::unique_ptr<layered_domain> ended(&layered(md));
    ended->layer.reset();
    md->ops = &ended->stock.operations();
    md->ops->close(md);
}

template <typename Attr>
void adjust(const domain_layer& layer, Attr& attr)
{
    memory_type_masks masks{
        .reg          = attr.reg_mem_types,
        .reg_nonblock = attr.reg_nonblock_mem_types,
        .cache        = attr.cache_mem_types,
        .detect       = attr.detect_mem_types,
        .alloc        = attr.alloc_mem_types,
        .access       = attr.access_mem_types,
        .dmabuf       = attr.dmabuf_mem_types,
    };
    layer.adjust(masks);
    attr.reg_mem_types          = masks.reg;
    attr.reg_nonblock_mem_types = masks.reg_nonblock;
    attr.cache_mem_types        = masks.cache;
    attr.detect_mem_types       = masks.detect;
    attr.alloc_mem_types        = masks.alloc;
    attr.access_mem_types       = masks.access;
    attr.dmabuf_mem_types       = masks.dmabuf;
    if ((attr.flags & UCT_MD_FLAG_EXPORTED_MKEY) != 0) {
        attr.exported_mkey_packed_size = layer.exported_key_length(attr.exported_mkey_packed_size);
    }
}

ucs_status_t query(uct_md_h md, void* attr)
{
    const auto status = layered(md).stock.operations().query(md, attr);
    return status != UCS_OK ? status : contained("query", [&] {
        if (attached()->md_attr == md_attr_variant::v1_16) {
            adjust(layer_of(md), *static_cast<md_attr_1_16*>(attr));
        } else {
            adjust(layer_of(md), *static_cast<md_attr_1_18*>(attr));
        }
        return UCS_OK;
    });
}

ucs_status_t mem_alloc_1_19(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type,
                            ucs_sys_device_t sys_device, unsigned flags, const char* name, uct_mem_h* memh)
{
    return contained("mem_alloc",
                     [&] { return layer_of(md).mem_alloc(length, address, {type, sys_device, flags, name}, memh); });
}

ucs_status_t mem_alloc_1_16(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type, unsigned flags,
                            const char* name, uct_mem_h* memh)
{
    return mem_alloc_1_19(md, length, address, type, UCS_SYS_DEVICE_ID_UNKNOWN, flags, name, memh);
}

ucs_status_t mem_free(uct_md_h md, uct_mem_h memh)
{
    return contained("mem_free", [&] { return layer_of(md).mem_free(memh); });
}

ucs_status_t mem_advise(uct_md_h md, uct_mem_h memh, void* address, std::size_t length, unsigned advice)
{
    return contained("mem_advise", [&] { return layer_of(md).mem_advise(memh, address, length, advice); });
}

ucs_status_t mem_reg(uct_md_h md, void* address, std::size_t length, const mem_reg_params* params, uct_mem_h* memh)
{
    return contained("mem_reg", [&] { return layer_of(md).mem_reg(address, length, params, memh); });
}

ucs_status_t mem_dereg(uct_md_h md, const mem_dereg_params* params)
{
    return contained("mem_dereg", [&] { return layer_of(md).mem_dereg(params); });
}

ucs_status_t mem_attach(uct_md_h md, const void* exported_key, mem_attach_params* params, uct_mem_h* memh)
{
    return contained("mem_attach", [&] { return layer_of(md).mem_attach(exported_key, params, memh); });
}

ucs_status_t mkey_pack(uct_md_h md, uct_mem_h memh, void* address, std::size_t length, const mkey_pack_params* params,
                       void* buffer)
{
    return contained("mkey_pack", [&] { return layer_of(md).mkey_pack(memh, address, length, params, buffer); });
}

// Releases before 1.22.1 call it without the last argument, which both calling conventions pass in a register.
ucs_status_t mem_elem_pack(uct_md_h md, uct_mem_h memh, uct_rkey_t rkey, void* element, void** release_handle)
{
    const layered_domain& self = layered(md);
    return self.layer->can_pack_element(memh)
               ? self.stock.operations().mem_elem_pack(md, memh, rkey, element, release_handle)
               : UCS_ERR_UNSUPPORTED;
}

// The table of a release is a beginning of the one that is declared here. What follows it in memory is not UCT's.
std::size_t operations_length()
{
    const form& form = *attached();
    return !form.packs_elements      ? offsetof(uct_md_ops, mem_elem_pack)
           : !form.releases_elements ? offsetof(uct_md_ops, mem_elem_release)
                                     : sizeof(uct_md_ops);
}

void put_layer(const stock_domain& stock, std::unique_ptr<domain_layer> layer)
{
    auto made                = std::make_unique<layered_domain>(uct_md_ops{}, stock, std::move(layer));
    uct_md_ops& operations   = made->operations;
    const std::size_t length = operations_length();
    std::memcpy(&operations, &stock.operations(), length);
    operations.close      = close;
    operations.query      = query;
    operations.mem_alloc  = attached()->alloc_takes_sys_dev ? reinterpret_cast<void (*)()>(mem_alloc_1_19)
                                                            : reinterpret_cast<void (*)()>(mem_alloc_1_16);
    operations.mem_free   = mem_free;
    operations.mem_advise = mem_advise;
    operations.mem_reg    = mem_reg;
    operations.mem_dereg  = mem_dereg;
    operations.mkey_pack  = mkey_pack;
    operations.mem_attach = mem_attach;
    if (length > offsetof(uct_md_ops, mem_elem_pack)) {
        operations.mem_elem_pack = mem_elem_pack;
    }
    stock.md()->ops = &made.release()->operations;
}

// A component is an object of static lifetime, and there is one that gets layers.
struct layered_component {
    component_layer layer;
    decltype(uct_component::md_open) md_open;
    void (*rkey_unpack)();
};

layered_component original;
bool is_added = false;

ucs_status_t md_open(uct_component* component, const char* name, const uct_md_config_t* config, uct_md_h* md)
{
    const auto status = original.md_open(component, name, config, md);
    if (status == UCS_OK) {
        try {
            const stock_domain stock(*md, (*md)->ops);
            if (auto layer = original.layer.open(stock, name)) {
                put_layer(stock, std::move(layer));
                if (original.layer.zcopy.is_needed != nullptr) {
                    cover_transports(*component, original.layer.zcopy); // some come by modules of their own, later
                }
            }
        } catch (const std::exception& failure) {
            ucs_warn("the memory domain of %s stays as it is: %s", name, failure.what());
        }
    }
    return status;
}

ucs_status_t rkey_unpack_1_19(uct_component* component, const void* buffer, const rkey_unpack_params* params,
                              uct_rkey_t* rkey, void** handle)
{
    std::uint64_t key;
    std::memcpy(&key, buffer, sizeof(key));
    if (const auto status = contained("rkey_unpack", [&] { return original.layer.unpack(key); }); status != UCS_OK) {
        return status;
    }
    return attached()->unpack_takes_params
               ? reinterpret_cast<unpack_1_19>(original.rkey_unpack)(component, &key, params, rkey, handle)
               : reinterpret_cast<unpack_1_16>(original.rkey_unpack)(component, &key, rkey, handle);
}

ucs_status_t rkey_unpack_1_16(uct_component* component, const void* buffer, uct_rkey_t* rkey, void** handle)
{
    return rkey_unpack_1_19(component, buffer, nullptr, rkey, handle);
}

} // namespace

void domain_layer::adjust(memory_type_masks&) const
{
}

ucs_status_t domain_layer::mem_alloc(std::size_t* length, void** address, const allocation_request& request,
                                     uct_mem_h* memh)
{
    const auto stock = _stock.operations().mem_alloc;
    return attached()->alloc_takes_sys_dev
               ? reinterpret_cast<alloc_1_19>(stock)(md(), length, address, request.type, request.sys_device,
                                                     request.flags, request.name, memh)
               : reinterpret_cast<alloc_1_16>(stock)(md(), length, address, request.type, request.flags, request.name,
                                                     memh);
}

ucs_status_t domain_layer::mem_free(uct_mem_h memh)
{
    return _stock.operations().mem_free(md(), memh);
}

ucs_status_t domain_layer::mem_advise(uct_mem_h memh, void* address, std::size_t length, unsigned advice)
{
    return _stock.operations().mem_advise(md(), memh, address, length, advice);
}

ucs_status_t domain_layer::mem_reg(void* address, std::size_t length, const mem_reg_params* params, uct_mem_h* memh)
{
    return _stock.operations().mem_reg(md(), address, length, params, memh);
}

ucs_status_t domain_layer::mem_dereg(const mem_dereg_params* params)
{
    return _stock.operations().mem_dereg(md(), params);
}

ucs_status_t domain_layer::mkey_pack(uct_mem_h memh, void* address, std::size_t length, const mkey_pack_params* params,
                                     void* buffer)
{
    return _stock.operations().mkey_pack(md(), memh, address, length, params, buffer);
}

ucs_status_t domain_layer::mem_attach(const void* exported_key, mem_attach_params* params, uct_mem_h* memh)
{
    return _stock.operations().mem_attach(md(), exported_key, params, memh);
}

bool add_layers(const char* name, const component_layer& layer)
{
    uct_component* const component = find_component(name);
    if (component == nullptr) {
        return false;
    }
    if (!is_added) {
        original               = {layer, component->md_open, component->rkey_unpack};
        component->md_open     = md_open;
        component->rkey_unpack = attached()->unpack_takes_params ? reinterpret_cast<void (*)()>(rkey_unpack_1_19)
                                                                 : reinterpret_cast<void (*)()>(rkey_unpack_1_16);
        is_added               = true;
    }
    return true;
}

ib_handles ib_handles_of(uct_md_h md)
{
    const auto* const domain = reinterpret_cast<const ib_domain*>(md);
    return {domain->pd, domain->context};
}

ib_registration ib_registration_of(uct_mem_h memh)
{
    const auto* const memory      = static_cast<const ib_memory*>(memh);
    constexpr std::uint32_t paged = ib_memory::paged_on_demand | ib_memory::of_all_memory;
    return {memory->lkey, (memory->flags & paged) != 0};
}

unsigned pack_flags(const mkey_pack_params* params)
{
    return (params->field_mask & mkey_pack_params::has_flags) != 0 ? params->flags : 0;
}

} // namespace ucxl::abi

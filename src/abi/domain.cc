#include "domain.h"

#include "refuse.h"
#include "uct_forms.h"
#include "ucx.h"

#include <climits>
#include <cstring>

namespace ucxl::abi
{

namespace
{

const domain_operations& operations_of(uct_md_h md)
{
    return *reinterpret_cast<const domain*>(md)->operations;
}

// What uct_md_base_md_query() of later releases sets and set() does not.
void set_defaults(md_attr_1_16& attr)
{
    attr.reg_nonblock_mem_types    = 0;
    attr.dmabuf_mem_types          = 0;
    attr.max_reg                   = ULONG_MAX;
    attr.reg_cost                  = ucs_linear_func_t{.c = 0, .m = 0};
    attr.exported_mkey_packed_size = 0;
    attr.reg_alignment             = 1;
    std::memset(&attr.local_cpus, 0xff, sizeof(attr.local_cpus));
}

template <typename Attr>
void set(Attr& attr, const domain_attr& told)
{
    attr.flags            = told.flags;
    attr.reg_mem_types    = told.reg_mem_types;
    attr.cache_mem_types  = told.cache_mem_types;
    attr.detect_mem_types = told.detect_mem_types;
    attr.alloc_mem_types  = told.alloc_mem_types;
    attr.access_mem_types = told.access_mem_types;
    attr.max_alloc        = told.max_alloc;
    attr.rkey_packed_size = told.rkey_packed_size;
}

// The fields before md_attr_1_22::required_mem_flags are those of md_attr_1_18; UCX's function fills in both.
ucs_status_t query(uct_md_h md, void* attr)
{
    const form& form = *attached();
    auto told        = operations_of(md).query();
    // Such a UCX creates no worker if a domain without keys does not say that it accesses host memory. Interfaces of
    // such a domain refuse what they cannot copy, see interface.h. UCX's older protocols do not ask them: they register
    // with the domain what they send to their own worker, and only through the cache.
    if (form.selects_by_access && (told.flags & UCT_MD_FLAG_NEED_RKEY) == 0) {
        told.access_mem_types |= UCS_BIT(UCS_MEMORY_TYPE_HOST);
        told.cache_mem_types |= told.reg_mem_types;
    }
    static const auto set_stock_defaults = find_function<void (*)(void*)>("uct_md_base_md_query");
    if (set_stock_defaults != nullptr) {
        set_stock_defaults(attr);
    } else {
        set_defaults(*static_cast<md_attr_1_16*>(attr)); // only the oldest form is without the function
    }
    if (form.md_attr == md_attr_variant::v1_16) {
        set(*static_cast<md_attr_1_16*>(attr), told);
    } else {
        set(*static_cast<md_attr_1_18*>(attr), told);
    }
    return UCS_OK;
}

ucs_status_t alloc_1_16(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type, unsigned flags,
                        const char*, uct_mem_h* memh)
{
    const auto function = operations_of(md).mem_alloc;
    return function != nullptr ? function(md, length, address, type, flags, memh) : UCS_ERR_UNSUPPORTED;
}

ucs_status_t alloc_1_19(uct_md_h md, std::size_t* length, void** address, ucs_memory_type_t type, ucs_sys_device_t,
                        unsigned flags, const char* name, uct_mem_h* memh)
{
    return alloc_1_16(md, length, address, type, flags, name, memh);
}

ucs_status_t free_memory(uct_md_h md, uct_mem_h memh)
{
    const auto function = operations_of(md).mem_free;
    return function != nullptr ? function(md, memh) : UCS_ERR_UNSUPPORTED;
}

void close(uct_md_h md)
{
    operations_of(md).close(md);
}

ucs_status_t reg(uct_md_h md, void* address, std::size_t length, const mem_reg_params* params, uct_mem_h* memh)
{
    return operations_of(md).mem_reg(md, address, length, params, memh);
}

ucs_status_t dereg(uct_md_h md, const mem_dereg_params* params)
{
    return operations_of(md).mem_dereg(md, params);
}

ucs_status_t pack_key(uct_md_h md, uct_mem_h memh, void* address, std::size_t length, const mkey_pack_params* params,
                      void* buffer)
{
    return operations_of(md).mkey_pack(md, memh, address, length, params, buffer);
}

ucs_status_t detect_type(uct_md_h md, const void* address, std::size_t, ucs_memory_type_t* type)
{
    const auto detect = operations_of(md).detect;
    if (detect == nullptr) {
        return UCS_ERR_UNSUPPORTED;
    }
    return detect(address, *type) ? UCS_OK : UCS_ERR_INVALID_ADDR;
}

ucs_status_t query_memory(uct_md_h md, const void* address, std::size_t length, mem_attr* attr)
{
    ucs_memory_type_t type;
    if (const auto status = detect_type(md, address, length, &type); status != UCS_OK) {
        return status;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = type;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_SYS_DEV) {
        attr->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS) {
        attr->base_address = const_cast<void*>(address);
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH) {
        attr->alloc_length = length;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_FD) {
        attr->dmabuf_fd = UCT_DMABUF_FD_INVALID;
    }
    if (attr->field_mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET) {
        attr->dmabuf_offset = 0;
    }
    if (attr->field_mask & mem_attr::has_memory_flags) {
        attr->mem_flags = memory_is_registrable; // as memory_types.h announces it: UCX compares the two
    }
    return UCS_OK;
}

void release_element(uct_md_h, void*)
{
}

uct_md_ops make_operations()
{
    return {
        .close              = close,
        .query              = query,
        .mem_alloc          = attached()->alloc_takes_sys_dev ? reinterpret_cast<void (*)()>(alloc_1_19)
                                                              : reinterpret_cast<void (*)()>(alloc_1_16),
        .mem_free           = free_memory,
        .mem_advise         = refuse,
        .mem_reg            = reg,
        .mem_dereg          = dereg,
        .mem_query          = query_memory,
        .mkey_pack          = pack_key,
        .mem_attach         = refuse,
        .detect_memory_type = detect_type,
        .mem_elem_pack      = refuse,
        .mem_elem_release   = release_element,
    };
}

} // namespace

void init_domain(domain& domain, const domain_operations& operations, uct_component* component)
{
    static const uct_md_ops table = make_operations();
    domain                        = {{&table, component}, &operations};
}

} // namespace ucxl::abi

#include "md.h"

#include <new>

namespace ucxl
{

constexpr abi::option base_md_options[] = {{"", "", nullptr, 0, abi::option_type::md_options}};

ucs_status_t open_base_md(const abi::domain_operations& operations, uct_component* component, uct_md_h* md)
{
    auto* const created = new (std::nothrow) abi::domain;
    if (created == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    init_domain(*created, operations, component);
    *md = &created->super;
    return UCS_OK;
}

void close_base_md(uct_md_h md)
{
    delete reinterpret_cast<abi::domain*>(md);
}

ucs_status_t base_md_mem_dereg(uct_md_h, const abi::mem_dereg_params* params)
{
    const bool invalidate = (params->field_mask & abi::mem_dereg_params::has_flags) != 0 &&
                            (params->flags & abi::mem_dereg_params::invalidate) != 0;
    return invalidate ? UCS_ERR_UNSUPPORTED : UCS_OK;
}

} // namespace ucxl

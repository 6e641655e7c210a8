#include "md.h"

#include <new>

namespace ucxl
{

ucs_config_field_t base_md_config_table[] = {{"", "", nullptr, 0, UCS_CONFIG_TYPE_TABLE(uct_md_config_table)}, {}};

ucs_status_t open_base_md(uct_md_ops& ops, uct_component* component, uct_md_h* md)
{
    auto* created = new (std::nothrow) uct_md{&ops, component};
    if (created == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    *md = created;
    return UCS_OK;
}

ucs_status_t base_md_mem_dereg(uct_md_h, const abi::mem_dereg_params* params)
{
    const bool invalidate = (params->field_mask & abi::mem_dereg_params::has_flags) != 0 &&
                            (params->flags & abi::mem_dereg_params::invalidate) != 0;
    return invalidate ? UCS_ERR_UNSUPPORTED : UCS_OK;
}

void base_md_vfs_init(uct_md_h)
{
}

} // namespace ucxl

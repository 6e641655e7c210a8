// The common part of memory domains that have no state of their own.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

#include <cstddef>

namespace ucxl
{

// A table without fields: uct_md_config_t has none, but a table of UCS must have a size.
extern ucs_config_field_t base_md_config_table[];
inline constexpr std::size_t base_md_config_size = sizeof(char);

ucs_status_t open_base_md(uct_md_ops& ops, uct_component* component, uct_md_h* md);
// For registrations that own nothing. Access by peers cannot be invalidated.
ucs_status_t base_md_mem_dereg(uct_md_h md, const abi::mem_dereg_params* params);
void base_md_vfs_init(uct_md_h md);

} // namespace ucxl

// What memory domains that keep nothing by themselves have in common.
#pragma once

#include "uct/abi/uct_abi_1_18.h"

#include <cstddef>

namespace ucxl
{

// Without fields of its own: uct_md_config_t has none, and a table of UCS has to have a size.
extern ucs_config_field_t base_md_config_table[];
inline constexpr std::size_t base_md_config_size = sizeof(char);

ucs_status_t open_base_md(uct_md_ops& ops, uct_component* component, uct_md_h* md);
// For registrations that own nothing. Peers' access to them cannot be invalidated.
ucs_status_t base_md_mem_dereg(uct_md_h md, const abi::mem_dereg_params* params);
void base_md_vfs_init(uct_md_h md);

} // namespace ucxl

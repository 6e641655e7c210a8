// The common part of memory domains that have no state of their own.
#pragma once

#include "abi/component.h"
#include "abi/domain.h"

namespace ucxl
{

// The options of a domain that has none of its own. A table of UCS must have a length.
extern const abi::option base_md_options[1];
inline constexpr std::size_t base_md_options_length = sizeof(char);

ucs_status_t open_base_md(const abi::domain_operations& operations, uct_component* component, uct_md_h* md);
void close_base_md(uct_md_h md);
// For registrations that own nothing. Access by peers cannot be invalidated.
ucs_status_t base_md_mem_dereg(uct_md_h md, const abi::mem_dereg_params* params);

} // namespace ucxl

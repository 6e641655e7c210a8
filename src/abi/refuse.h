// Fills the entries of UCX's function tables that nothing of ours supports.
#pragma once

#include <ucs/type/status.h>

namespace ucxl::abi
{

template <typename... Args>
ucs_status_t refuse(Args...)
{
    return UCS_ERR_UNSUPPORTED;
}

} // namespace ucxl::abi

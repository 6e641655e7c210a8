// Fills the entries of UCT's function tables that a transport does not support.
#pragma once

#include <ucs/type/status.h>

namespace ucxl
{

template <typename... Args>
ucs_status_t not_supported(Args...)
{
    return UCS_ERR_UNSUPPORTED;
}

} // namespace ucxl

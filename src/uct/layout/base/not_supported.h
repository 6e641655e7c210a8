// What a table of functions of UCT holds where there is nothing to offer.
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

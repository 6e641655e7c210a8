// How a call or a transfer ended, in NIXL's terms: the numbers are those of nixl_status_t, which engine.cc checks.
#pragma once

#include <ucp/api/ucp.h>

namespace ucxl::nixl
{

enum class outcome : int {
    in_progress       = 1,
    success           = 0,
    not_posted        = -1,
    invalid_parameter = -2,
    backend           = -3,
    not_found         = -4,
    mismatch          = -5,
    not_allowed       = -6,
    repost_active     = -7,
    not_supported     = -9,
    disconnected      = -10,
    canceled          = -11
};

outcome outcome_of(ucs_status_t status);

} // namespace ucxl::nixl

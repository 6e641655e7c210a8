#include "outcome.h"

namespace ucxl::nixl
{

outcome outcome_of(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return outcome::success;
    case UCS_INPROGRESS:
        return outcome::in_progress;
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
    case UCS_ERR_OUT_OF_RANGE:
    case UCS_ERR_EXCEEDS_LIMIT:
        return outcome::invalid_parameter;
    case UCS_ERR_NO_ELEM:
        return outcome::not_found;
    case UCS_ERR_BUSY:
        return outcome::not_allowed;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NOT_IMPLEMENTED:
        return outcome::not_supported;
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_REJECTED:
        return outcome::disconnected;
    case UCS_ERR_CANCELED:
        return outcome::canceled;
    default:
        return outcome::backend;
    }
}

} // namespace ucxl::nixl

// ucp_layout_capture_errors.
#include "ucp_layout.h"

#include "abi/log.h"
#include "ucs/sys/argument.h"

using namespace ucxl;

ucs_status_t ucp_layout_capture_errors(char* text, size_t length)
{
    if (text != nullptr && length == 0) {
        return log_invalid_param(__func__, "length is 0");
    }
    abi::capture_errors(text, length);
    return UCS_OK;
}

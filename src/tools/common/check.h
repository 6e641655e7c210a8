// What ends a tool: a sentence for the user, which main() prints before it exits with status 1. Never thrown through a
// callback of UCX.
#pragma once

#include <stdexcept>
#include <string>
#include <ucs/type/status.h>

namespace ucxl::tools
{

class failure : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

inline void check(ucs_status_t status, const char* call)
{
    if (status != UCS_OK) {
        throw failure(std::string(call) + ": " + ucs_status_string(status));
    }
}

} // namespace ucxl::tools

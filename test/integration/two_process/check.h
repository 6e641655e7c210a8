// How a peer process reports that something is wrong: it throws, run_peer() prints the text and ends with status 1,
// and the parent shows it as the failure of the test. (GoogleTest runs in the parent only.)
#pragma once

#include <format>
#include <stdexcept>
#include <string>
#include <utility>

#include <ucp/api/ucp.h>

namespace ucxl::two_process
{

struct peer_failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <typename... Args>
void check(bool condition, std::format_string<Args...> format, Args&&... args)
{
    if (!condition) {
        throw peer_failure(std::format(format, std::forward<Args>(args)...));
    }
}

inline void check_ok(ucs_status_t status, const char* what)
{
    check(status == UCS_OK, "{}: {}", what, ucs_status_string(status));
}

} // namespace ucxl::two_process

// How a process without GoogleTest says that something is wrong: it throws, main() or end_with_failure() prints the
// text and ends it with status 1, and the test that started it fails with this text.
#pragma once

#include <format>
#include <stdexcept>
#include <string>
#include <utility>

#include <ucp/api/ucp.h>

namespace ucxl::test
{

template <typename... Args>
void check(bool condition, std::format_string<Args...> format, Args&&... args)
{
    if (!condition) {
        throw std::runtime_error(std::format(format, std::forward<Args>(args)...));
    }
}

inline void check_ok(ucs_status_t status, const char* call)
{
    check(status == UCS_OK, "{}: {}", call, ucs_status_string(status));
}

} // namespace ucxl::test

// How the tools give up: they throw a sentence for the user to main(), which prints it and exits with status 1. Never
// thrown through a callback of UCX.
#pragma once

#include <fmt/format.h>

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

template <typename... Args>
[[noreturn]] void give_up(fmt::format_string<Args...> format, Args&&... args)
{
    throw failure(fmt::format(format, std::forward<Args>(args)...));
}

inline void check(ucs_status_t status, const char* call)
{
    if (status != UCS_OK) {
        give_up("{}: {}", call, ucs_status_string(status));
    }
}

} // namespace ucxl::tools

// Status codes of UCX as exceptions: an example stops at the first thing that fails, with its name.
#pragma once

#include <expected>
#include <stdexcept>
#include <string>
#include <ucs/type/status.h>
#include <utility>

namespace examples
{

inline void check(ucs_status_t status, const char* what)
{
    if (status != UCS_OK) {
        throw std::runtime_error(std::string(what) + ": " + ucs_status_string(status));
    }
}

// What a call of the C++ API gave.
template <typename T>
T must(std::expected<T, ucs_status_t> made, const char* what)
{
    check(made ? UCS_OK : made.error(), what);
    return std::move(*made);
}

} // namespace examples

// Turns status codes of UCX into exceptions: an example stops at the first failure and names it.
#pragma once

#include <expected>
#include <stdexcept>
#include <string>
#include <ucs/type/status.h>
#include <utility>

namespace examples
{

inline void check(ucs_status_t status, const char* step)
{
    if (status != UCS_OK) {
        throw std::runtime_error(std::string(step) + ": " + ucs_status_string(status));
    }
}

// Returns the value of a call of the C++ API.
template <typename T>
T must(std::expected<T, ucs_status_t> result, const char* step)
{
    check(result ? UCS_OK : result.error(), step);
    return std::move(*result);
}

} // namespace examples

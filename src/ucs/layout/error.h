// Errors of the pure layers (src/ucs/layout, src/ucs/pack): a code, and a message that names the field and the limit.
// The layer that turns a code into a ucs_status_t also logs the message, once.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace ucxl
{

enum class errc {
    invalid_param, // a value contradicts another one or the documentation
    exceeds_limit, // a named limit of limits.h would be passed, or 64-bit arithmetic would overflow
    no_memory,
    malformed,   // bytes of a wire form or a text are not one
    unsupported, // well formed, but of a newer version
};

struct error {
    errc code;
    std::string message;
};

template <typename T>
using result = std::expected<T, error>;

inline std::unexpected<error> fail(errc code, std::string message)
{
    return std::unexpected(error{code, std::move(message)});
}

} // namespace ucxl

// Errors of this folder on their way to the C function that logs them: a status and what to say.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <format>
#include <string>
#include <utility>

#include <ucs/type/status.h>

namespace ucxl::mlx5
{

struct failure {
    ucs_status_t status;
    std::string message;
};

template <typename T>
using outcome = std::expected<T, failure>;

inline std::unexpected<failure> failed(ucs_status_t status, std::string message)
{
    return std::unexpected(failure{status, std::move(message)});
}

// What the device or the kernel refused, by errno.
inline std::unexpected<failure> refused(const char* what, int error = errno)
{
    const ucs_status_t status = error == ENOMEM                                   ? UCS_ERR_NO_MEMORY
                                : error == EOPNOTSUPP || error == EPROTONOSUPPORT ? UCS_ERR_UNSUPPORTED
                                                                                  : UCS_ERR_IO_ERROR;
    return failed(status, std::format("{}: {}", what, std::strerror(error)));
}

} // namespace ucxl::mlx5

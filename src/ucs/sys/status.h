// Turns errors of the pure layers into ucs_status_t, and guards every public function. The status is chosen here, so
// the message is logged here, once.
#pragma once

#include "log_limit.h"

#include "sys/error.h"

#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "abi/log.h"
#include <ucs/type/status.h>

namespace ucxl
{

constexpr ucs_status_t to_status(errc code)
{
    switch (code) {
    case errc::invalid_param:
    case errc::malformed:
        return UCS_ERR_INVALID_PARAM;
    case errc::exceeds_limit:
        return UCS_ERR_EXCEEDS_LIMIT;
    case errc::no_memory:
        return UCS_ERR_NO_MEMORY;
    case errc::no_resource:
        return UCS_ERR_NO_RESOURCE;
    case errc::no_device:
        return UCS_ERR_NO_DEVICE;
    case errc::unsupported:
        return UCS_ERR_UNSUPPORTED;
    case errc::timed_out:
        return UCS_ERR_TIMED_OUT;
    case errc::io_error:
        return UCS_ERR_IO_ERROR;
    }
    return UCS_ERR_INVALID_PARAM;
}

inline ucs_status_t log_error(const char* function, const error& error)
{
    ucs_error("%s: %s%s", function, error.code == errc::no_memory ? "out of memory: " : "", error.message.c_str());
    return to_status(error.code);
}

template <typename T>
ucs_status_t status_of(const char* function, const result<T>& done)
{
    return done ? UCS_OK : log_error(function, done.error());
}

inline ucs_status_t log_invalid_param(const char* function, std::string message)
{
    return log_error(function, {errc::invalid_param, std::move(message)});
}

// The same for errors that a peer can cause as often as it likes.
inline ucs_status_t log_peer_error(const char* function, const error& error)
{
    static log_limit limit;
    std::uint64_t left_out = 0;
    if (!limit.take(left_out)) {
        return to_status(error.code);
    }
    if (left_out > 0) {
        ucs_error("%s: %lu more errors were not logged", function, left_out);
    }
    return log_error(function, error);
}

inline ucs_status_t log_no_memory(const char* function)
{
    ucs_error("%s: out of memory", function);
    return UCS_ERR_NO_MEMORY;
}

// Runs `body`, which returns ucs_status_t, and lets no exception reach a C frame. A container throws std::length_error,
// not bad_alloc, when asked for more than it can ever hold.
template <typename Body>
ucs_status_t guarded(const char* function, Body&& body) noexcept
{
    try {
        return std::forward<Body>(body)();
    } catch (const std::bad_alloc&) {
        return log_no_memory(function);
    } catch (const std::length_error&) {
        return log_no_memory(function);
    } catch (const std::exception& unexpected) {
        ucs_error("%s: %s", function, unexpected.what());
        return UCS_ERR_IO_ERROR;
    }
}

// An unknown bit requests something that this release cannot do, so it is an error.
inline ucs_status_t check_field_mask(const char* function, std::uint64_t mask, std::uint64_t known)
{
    if ((mask & ~known) != 0) {
        ucs_error("%s: field_mask 0x%lx has unknown bits 0x%lx", function, mask, mask & ~known);
        return UCS_ERR_INVALID_PARAM;
    }
    return UCS_OK;
}

} // namespace ucxl

// Why something about memory or its file cannot be told: maybe only because no file descriptor is left.
//
// Example: if (!file) { return fail_or_no_descriptor("the memory has no file that can be found"); }
#pragma once

#include "sys/error.h"
#include "sys/fd.h"

namespace ucxl
{

// invalid_param with the message, or no_memory if the process or the system has no file descriptor left: then nothing
// is wrong with the memory, and a later attempt may succeed.
inline std::unexpected<error> fail_or_no_descriptor(std::string message)
{
    const owned_fd probe(open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
    if (!probe && (errno == EMFILE || errno == ENFILE)) {
        return fail(errc::no_memory, std::format("no file descriptor is left: {}", std::strerror(errno)));
    }
    return fail(errc::invalid_param, std::move(message));
}

} // namespace ucxl

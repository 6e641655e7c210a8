// Limits of the system for this process. A file that would become longer than RLIMIT_FSIZE is not refused: the process
// gets SIGXFSZ, which ends it.
//
// Example: if (has_limit(RLIMIT_FSIZE, length)) { return fail(errc::no_memory, "..."); }
#pragma once

#include <cstdint>

#include <sys/resource.h>

namespace ucxl
{

// Whether a limit below `needed` holds.
inline bool has_limit(decltype(RLIMIT_AS) resource, std::uint64_t needed)
{
    rlimit limit{};
    return getrlimit(resource, &limit) != 0 || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < needed);
}

} // namespace ucxl

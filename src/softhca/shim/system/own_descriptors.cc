#include "own_descriptors.h"

#include "libc_functions.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <sys/resource.h>

namespace ucxl::softhca
{

int to_high_descriptor(int descriptor)
{
    if (descriptor < 0) {
        return descriptor;
    }
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    // Not higher than needed: the kernel's table of descriptors grows to the highest one.
    const auto lowest = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1024)) - 128;
    const int high    = lowest > 0 ? libc().fcntl(descriptor, F_DUPFD_CLOEXEC, lowest) : -1;
    if (high < 0) {
        return descriptor;
    }
    libc().close(descriptor);
    return high;
}

int reopen_descriptor(int process, int descriptor, int flags)
{
    std::array<char, 64> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", process, descriptor);
    const int opened = libc().open(path.data(), flags);
    return opened < 0 ? -errno : opened;
}

} // namespace ucxl::softhca

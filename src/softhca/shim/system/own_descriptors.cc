#include "own_descriptors.h"

#include "libc_functions.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

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

namespace
{

using path_text = std::array<char, 64>;

// The folder of this process is empty once its main thread has ended by pthread_exit(), those of the other threads are
// not.
path_text path_of(int process, int descriptor)
{
    path_text path;
    if (process == ::getpid()) {
        std::snprintf(path.data(), path.size(), "/proc/thread-self/fd/%d", descriptor);
    } else {
        std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", process, descriptor);
    }
    return path;
}

} // namespace

int reopen_descriptor(int process, int descriptor, int flags)
{
    const path_text path = path_of(process, descriptor);
    const int opened     = libc().open(path.data(), flags);
    return opened < 0 ? -errno : opened;
}

bool is_event_fd(int process, int fd)
{
    constexpr std::string_view name = "anon_inode:[eventfd]";
    const path_text path            = path_of(process, fd);
    std::array<char, 64> target;
    const ssize_t length = libc().readlink(path.data(), target.data(), target.size());
    return length >= 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == name;
}

int borrow_descriptor(int process, int fd)
{
    const auto handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
    if (handle < 0) {
        return -errno;
    }
    const auto borrowed = static_cast<int>(::syscall(SYS_pidfd_getfd, handle, fd, 0));
    const int error     = errno;
    libc().close(handle);
    return borrowed < 0 ? -error : borrowed;
}

} // namespace ucxl::softhca

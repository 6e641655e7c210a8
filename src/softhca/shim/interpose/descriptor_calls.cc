// Calls on descriptors. Those on device files go to the kernel's part (uverbs/kernel.h).
#include "export.h"
#include "softhca/shim/process/device_process.h"
#include "softhca/shim/system/libc_functions.h"
#include "virtual_files.h"

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <limits>
#include <linux/close_range.h>
#include <linux/netlink.h>

using namespace ucxl::softhca;

namespace
{

void before_close(int fd)
{
    device_process::closing(fd);
    forget_virtual(fd);
}

int copied(int from, int to)
{
    if (to >= 0) {
        const int saved = errno;
        device_process::duplicated(from, to);
        errno = saved;
    }
    return to;
}

int fcntl_any(int fd, int command, void* argument)
{
    const int done = libc().fcntl(fd, command, argument);
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, done) : done;
}

} // namespace

SOFTHCA_INTERPOSED int ioctl(int fd, unsigned long request, ...) noexcept
{
    va_list rest;
    va_start(rest, request);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    device_process* const owner = device_process::owner_of(fd);
    return owner != nullptr ? owner->ioctl(fd, request, argument) : libc().ioctl(fd, request, argument);
}

SOFTHCA_INTERPOSED ssize_t write(int fd, const void* bytes, size_t length)
{
    device_process* const owner = device_process::owner_of(fd);
    return owner != nullptr ? owner->write(fd, bytes, length) : libc().write(fd, bytes, length);
}

// Event channels end with a record that the program must not see.
SOFTHCA_INTERPOSED ssize_t read(int fd, void* into, size_t room)
{
    const ssize_t done          = libc().read(fd, into, room);
    device_process* const owner = done >= 0 && room != 0 ? device_process::owner_of(fd) : nullptr;
    return owner != nullptr ? owner->was_read(fd, into, static_cast<std::size_t>(done)) : done;
}

// For programs compiled with _FORTIFY_SOURCE.
SOFTHCA_INTERPOSED ssize_t __read_chk(int fd, void* into, size_t room, size_t size)
{
    if (room > size) {
        std::abort();
    }
    return read(fd, into, room);
}

SOFTHCA_INTERPOSED int close(int fd)
{
    before_close(fd);
    return libc().close(fd);
}

SOFTHCA_INTERPOSED int close_range(unsigned first, unsigned last, int flags) noexcept
{
    if ((static_cast<unsigned>(flags) & CLOSE_RANGE_CLOEXEC) == 0) {
        device_process::closing(first, last);
    }
    return libc().close_range(first, last, flags);
}

SOFTHCA_INTERPOSED void closefrom(int first) noexcept
{
    close_range(static_cast<unsigned>(std::max(first, 0)), std::numeric_limits<unsigned>::max(), 0);
}

SOFTHCA_INTERPOSED int dup(int fd) noexcept
{
    return copied(fd, libc().dup(fd));
}

SOFTHCA_INTERPOSED int dup2(int from, int to) noexcept
{
    const int done = libc().dup2(from, to);
    return from == to ? done : copied(from, done);
}

SOFTHCA_INTERPOSED int dup3(int from, int to, int flags) noexcept
{
    return copied(from, libc().dup3(from, to, flags));
}

SOFTHCA_INTERPOSED int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    return fcntl_any(fd, command, argument);
}

SOFTHCA_INTERPOSED int fcntl64(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    void* const argument = va_arg(rest, void*);
    va_end(rest);
    return fcntl_any(fd, command, argument);
}

// Without this interface of the kernel libibverbs looks for devices in /sys.
SOFTHCA_INTERPOSED int socket(int domain, int type, int protocol) noexcept
{
    if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return libc().socket(domain, type, protocol);
}

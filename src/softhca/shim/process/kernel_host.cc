// device_process as the host of the kernel's part (kernel_host.h).
#include "device_process.h"

#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include <sys/socket.h>

#include "softhca/shim/host/event_pipe.h"
#include "softhca/shim/system/check_memory.h"
#include "softhca/shim/system/guarded_copy.h"
#include "softhca/shim/system/libc_functions.h"
#include "softhca/shim/system/own_descriptors.h"

namespace ucxl::softhca
{

namespace
{

// As the kernel: MAX_ASYNC_BYTES_IN_USE in infiniband/hw/mlx5/devx.c. The system may allow less.
constexpr int most_answer_bytes = 1 << 20;

// Whether UARs made by this thread belong to a context that reports its doorbells itself, and the last of them.
thread_local bool opening           = false;
thread_local std::uint32_t last_uar = 0;

} // namespace

void device_process::begin_open()
{
    opening  = true;
    last_uar = 0;
}

std::uint32_t device_process::end_open()
{
    opening = false;
    return std::exchange(last_uar, 0);
}

int device_process::open_device_file(function_id, int flags)
{
    const int file = _memory.open_file(O_RDWR | (flags & O_CLOEXEC));
    struct stat found{};
    if (file >= 0 && libc().fstat(file, &found) == 0) {
        _file_device = found.st_dev;
        _file_inode  = found.st_ino;
    }
    return file;
}

std::uint64_t device_process::uar_map_offset(std::uint32_t uar)
{
    return fabric_memory::uar_offset(uar);
}

std::uint16_t device_process::memic_page_index(function_id function, std::size_t page)
{
    return fabric_memory::memic_page_index(_fabric->function(function).device, page);
}

void device_process::uar_made(std::uint32_t uar)
{
    _pages.add(uar, !opening);
    last_uar = uar;
}

void device_process::uar_freed(std::uint32_t uar)
{
    _pages.remove(uar);
}

event_channel device_process::make_event_channel(int flags)
{
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), flags & (O_CLOEXEC | O_NONBLOCK)) != 0) {
        return {.reader = -errno, .writer = -1, .pipe_inode = 0};
    }
    // Another description than that of pipe2(): this one also removes unread events, and needs no free descriptor for
    // that.
    const int own = reopen_descriptor(_process.process, ends[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
    libc().close(ends[1]);
    struct stat made{};
    if (own < 0 || libc().fstat(own, &made) != 0) {
        libc().close(ends[0]);
        return {.reader = own < 0 ? own : -errno, .writer = -1, .pipe_inode = 0};
    }
    return {.reader = ends[0], .writer = to_high_descriptor(own), .pipe_inode = made.st_ino};
}

event_channel device_process::make_answer_channel(int flags)
{
    // Unlike those of a pipe, the packets of a socket may be longer than a page.
    std::array<int, 2> ends{};
    const int type = SOCK_SEQPACKET | ((flags & O_CLOEXEC) != 0 ? SOCK_CLOEXEC : 0);
    if (::socketpair(AF_UNIX, type, 0, ends.data()) != 0) {
        return {.reader = -errno, .writer = -1, .pipe_inode = 0};
    }
    ::setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &most_answer_bytes, sizeof(most_answer_bytes));
    struct stat made{};
    libc().fstat(ends[1], &made);
    return {.reader = ends[0], .writer = to_high_descriptor(ends[1]), .pipe_inode = made.st_ino};
}

int device_process::write_answer(const event_channel& channel, std::span<const std::byte> answer)
{
    const ssize_t sent = ::send(channel.writer, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return sent == static_cast<ssize_t>(answer.size()) ? 0 : EAGAIN;
}

event_channel device_process::keep_event_fd(int fd)
{
    if (libc().fcntl(fd, F_GETFD) < 0) {
        return {.reader = -EBADF, .writer = -1, .pipe_inode = 0};
    }
    if (!is_event_fd(_process.process, fd)) {
        return {.reader = -EINVAL, .writer = -1, .pipe_inode = 0};
    }
    const int own = libc().fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        return {.reader = -errno, .writer = -1, .pipe_inode = 0};
    }
    return {.reader = 0, .writer = to_high_descriptor(own), .pipe_inode = 0};
}

void device_process::end_event_channel(const event_channel& channel)
{
    if (channel.writer >= 0) {
        libc().close(channel.writer);
    }
}

void device_process::close_file(int fd)
{
    libc().close(fd);
}

std::uint32_t device_process::drop_events(const event_channel& channel, std::size_t event_bytes, std::uint64_t value)
{
    // Only holders of the lock write events.
    const bool died = _host.lock();
    const std::lock_guard held(_host, std::adopt_lock);
    if (died) {
        _memory.lock().owe_repair();
    }
    // The program may have closed a descriptor that it does not know, and have a file of its own there.
    struct stat found{};
    if (libc().fstat(channel.writer, &found) != 0 || found.st_ino != channel.pipe_inode || !S_ISFIFO(found.st_mode)) {
        return 0;
    }
    return remove_events(channel.writer, event_bytes, value);
}

bool device_process::read_user(void* to, std::uint64_t from, std::size_t length)
{
    return guarded_copy(to, reinterpret_cast<const void*>(from), length) == copy_status::ok;
}

bool device_process::write_user(std::uint64_t to, const void* from, std::size_t length)
{
    return guarded_copy(reinterpret_cast<void*>(to), from, length) == copy_status::ok;
}

int device_process::check_user(std::uint64_t address, std::uint64_t length, bool writable)
{
    return check_memory(address, length, writable);
}

} // namespace ucxl::softhca

// What the kernel's part (kernel_device.h) asks of the process.
#include "descriptors.h"
#include "device_process.h"
#include "guarded_copy.h"
#include "libc_functions.h"
#include "user_memory.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace ucxl::softhca
{
namespace
{

// Enough for the packets of many objects' events.
constexpr int channel_bytes = 256 * 1024;

// UARs made by this thread tell of their doorbells themselves; and the last of them.
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

std::uint16_t device_process::memic_page_index(function_id which, std::size_t page)
{
    return fabric_memory::memic_page_index(_fabric->function(which).device, page);
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
        return {.reader = -errno, .writer = -1};
    }
    libc().fcntl(ends[1], F_SETPIPE_SZ, channel_bytes);
    // Packets: a reader gets one event at a time, whatever the size of its buffer.
    libc().fcntl(ends[1], F_SETFL, O_NONBLOCK | O_DIRECT);
    return {.reader = ends[0], .writer = to_high_descriptor(ends[1])};
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
    const int reader = reopen_descriptor(_process.process, channel.writer, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (reader < 0 || event_bytes < sizeof(value)) {
        return 0;
    }
    std::uint32_t dropped = 0;
    std::vector<std::byte> event(event_bytes);
    std::vector<std::byte> kept;
    // Events come from holders of the lock only.
    if (_host.lock()) {
        _memory.lock().owe_repair();
    }
    while (::read(reader, event.data(), event_bytes) == static_cast<ssize_t>(event_bytes)) {
        std::uint64_t whose = 0;
        std::memcpy(&whose, event.data(), sizeof(whose));
        if (whose == value) {
            ++dropped;
        } else {
            kept.insert(kept.end(), event.begin(), event.end());
        }
    }
    for (std::size_t at = 0; at < kept.size(); at += event_bytes) {
        (void)!libc().write(channel.writer, kept.data() + at, event_bytes);
    }
    _host.unlock();
    libc().close(reader);
    return dropped;
}

void device_process::write_event(const event_channel& channel, const event_entry& event)
{
    (void)!libc().write(channel.writer, event.bytes.data(), event.length);
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

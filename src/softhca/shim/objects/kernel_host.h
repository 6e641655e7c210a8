// The interface between the kernel's part (kernel.h) and the process it is in. Tests implement it without
// interposition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "softhca/core/fabric.h"

namespace ucxl::softhca
{

// The two ends of a pipe (event_pipe.h): the program reads from one, events are written to the other. Descriptors of
// this process.
struct event_channel {
    int reader               = -1;
    int writer               = -1;
    std::uint64_t pipe_inode = 0;
};

class kernel_host
{
public:
    virtual ~kernel_host() = default;

    // A new descriptor of a device file; negative errno. `flags` (of open()) say whether it is close-on-exec. The
    // offsets below are for mapping it.
    virtual int open_device_file(function_id function, int flags) = 0;

    // Offsets for mmap() on the descriptor of a device file: the doorbell page of a UAR, and a page of device memory as
    // the 16-bit index that libmlx5 turns into an offset (page 0 is at fabric::memic_offset).
    virtual std::uint64_t uar_map_offset(std::uint32_t uar)                        = 0;
    virtual std::uint16_t memic_page_index(function_id function, std::size_t page) = 0;

    // The UAR was allocated, or freed. The host manages its mapping.
    virtual void uar_made(std::uint32_t uar)  = 0;
    virtual void uar_freed(std::uint32_t uar) = 0;

    // `flags`: O_CLOEXEC and O_NONBLOCK for the reader. A negative errno is returned in `reader`.
    virtual event_channel make_event_channel(int flags) = 0;
    // The answers of asynchronous commands: packets of any length, which only this process writes. As
    // make_event_channel.
    virtual event_channel make_answer_channel(int flags) = 0;
    // 0, or EAGAIN when too many are unread.
    virtual int write_answer(const event_channel& channel, std::span<const std::byte> answer) = 0;
    // Keeps an eventfd of the program, as a channel without reader. A negative errno is returned in `reader`.
    virtual event_channel keep_event_fd(int fd) = 0;
    // No route uses the writer any more: closes it. The reader is closed by the program, or by close_file().
    virtual void end_event_channel(const event_channel& channel) = 0;
    // Removes the unread events with that value (first 8 bytes) from the channel; all its events have that size, and
    // the others stay in order. No event is written meanwhile. Returns how many were removed.
    virtual std::uint32_t drop_events(const event_channel& channel, std::size_t event_bytes, std::uint64_t value) = 0;

    // The C library's close(), for descriptors that were made here and that the program never got.
    virtual void close_file(int fd) = 0;

    // Reads and writes memory of the program; false when it is not mapped (EFAULT).
    virtual bool read_user(void* to, std::uint64_t from, std::size_t length)        = 0;
    virtual bool write_user(std::uint64_t to, const void* from, std::size_t length) = 0;
    // Checks that the program can read (and write) that memory: 0 or an errno, as pinning it gives.
    virtual int check_user(std::uint64_t address, std::uint64_t length, bool writable) = 0;
};

} // namespace ucxl::softhca

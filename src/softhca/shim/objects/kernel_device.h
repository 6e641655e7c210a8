// The kernel's part: device files and what programs do with them, ended with commands to the model (fabric.h).
//
// One object per process. Calls are made by the wrappers of the C library's functions (interposition), in the thread of
// the program, and answer as system calls do: -1 and errno. Everything a device file made ends when its last descriptor
// is closed. Thread safe.
//
//     kernel& device = ...;
//     if (auto fd = device.open("/dev/infiniband/uverbs0", O_RDWR))
//         return *fd;                       otherwise call the C library's open()
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "event_entry.h"
#include "softhca/core/fabric.h"
#include "softhca/shim/sysfs/tree.h"

namespace ucxl::softhca
{

// The two ends of a pipe (event_pipe.h): what the program reads from, and what events are written to. Descriptors of
// this process.
struct event_channel {
    int reader               = -1;
    int writer               = -1;
    std::uint64_t pipe_inode = 0;
};

// What the kernel's part needs from the process it is in. Tests implement it without interposition.
class kernel_host
{
public:
    virtual ~kernel_host() = default;

    // A new descriptor for an opened device file, close-on-exec as `flags` (of open()) say; negative errno. What the
    // program maps of it are the offsets below.
    virtual int open_device_file(function_id which, int flags) = 0;

    // Offsets for mmap() on the descriptor of a device file: the doorbell page of a UAR; a page of device memory
    // (page 0 is at fabric::memic_offset), as the 16-bit index that libmlx5 turns into an offset.
    virtual std::uint64_t uar_map_offset(std::uint32_t uar)                     = 0;
    virtual std::uint16_t memic_page_index(function_id which, std::size_t page) = 0;

    // The UAR exists from here on, or does not any more. What is mapped of it is the host's to manage.
    virtual void uar_made(std::uint32_t uar)  = 0;
    virtual void uar_freed(std::uint32_t uar) = 0;

    // `flags`: O_CLOEXEC, O_NONBLOCK for the reader. Negative errno in `reader`.
    virtual event_channel make_event_channel(int flags) = 0;
    // The writer is not used any more, no route has it: close it. The reader is the program's to close, or
    // close_file's.
    virtual void end_event_channel(const event_channel& channel) = 0;
    // Takes the unread events with that value (first 8 bytes) out of the channel, whose events all have that size; the
    // others stay in order. No event is written meanwhile. Returns how many were taken.
    virtual std::uint32_t drop_events(const event_channel& channel, std::size_t event_bytes, std::uint64_t value) = 0;

    // The C library's close(), for descriptors that were made here and that the program never got.
    virtual void close_file(int fd) = 0;

    // Memory of the program; false where it is not there (EFAULT).
    virtual bool read_user(void* to, std::uint64_t from, std::size_t length)        = 0;
    virtual bool write_user(std::uint64_t to, const void* from, std::size_t length) = 0;
    // Whether the program has all of that memory and may read (and write) it: 0 or an errno, as pinning it gives.
    virtual int check_user(std::uint64_t address, std::uint64_t length, bool writable) = 0;
};

class kernel
{
public:
    kernel(fabric& device, kernel_host& outside);
    ~kernel(); // closes what is open
    kernel(const kernel&)            = delete;
    kernel& operator=(const kernel&) = delete;

    // Device files: a new descriptor or -1 with errno. Nothing: not a path of a device file. Paths of sysfs are for
    // files().
    std::optional<int> open(std::string_view path, int flags) noexcept;

    // Whether a descriptor is a device file, or the reading end of an event channel. Cheap for any number.
    bool owns(int fd) const noexcept;
    // Of a device file, for fstat().
    std::optional<dev_t> device_number(int fd) const noexcept;

    // For device files.
    int ioctl(int fd, unsigned long request, void* argument) noexcept;
    ssize_t write(int fd, const void* bytes, std::size_t length) noexcept;

    // Before the C library closes `fd`, for any fd that owns() says yes to; and after it copied `from` to `to`.
    void closing(int fd) noexcept;
    void duplicated(int from, int to) noexcept;

    // In the child of fork(): what is open is the parent's and nothing is released. From here on there is nothing open
    // and nothing can be opened; the child makes a new kernel.
    void forget() noexcept;

    // In the child of fork(), by its new kernel: files of its own behind the descriptors of device files that it has
    // from its parent. False where one of the parent's threads was in a call at that moment.
    bool adopt(kernel& parents) noexcept;
    // Of the parent's, in the child: this descriptor was closed.
    void disown(int fd) noexcept;

    const sysfs_tree& files() const noexcept;

private:
    struct state;
    std::unique_ptr<state> _state;
};

} // namespace ucxl::softhca

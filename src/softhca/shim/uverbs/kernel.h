// The kernel's part: device files, and what programs do with them. It sends commands to the model (fabric.h).
//
// There is one object per process. The wrappers of the C library's functions (interpose) call it in the thread of the
// program. It answers as system calls do: -1 and errno. Closing the last descriptor of a device file releases all its
// objects. Thread safe.
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
#include <span>
#include <string_view>

#include "softhca/shim/objects/kernel_host.h"
#include "softhca/shim/sysfs/tree.h"

namespace ucxl::softhca
{

class kernel
{
public:
    kernel(fabric& device, kernel_host& outside);
    ~kernel(); // closes the open device files
    kernel(const kernel&)            = delete;
    kernel& operator=(const kernel&) = delete;

    // Opens a device file: a new descriptor, or -1 with errno. Nothing when the path is not a device file. files() has
    // the paths of sysfs.
    std::optional<int> open(std::string_view path, int flags) noexcept;

    // Whether a descriptor is a device file or the reading end of an event channel. Cheap for any number.
    bool owns(int fd) const noexcept;
    // The device number of a device file, for fstat().
    std::optional<dev_t> device_number(int fd) const noexcept;

    // For device files.
    int ioctl(int fd, unsigned long request, void* argument) noexcept;
    ssize_t write(int fd, const void* bytes, std::size_t length) noexcept;
    // For event channels: what the program gets for the events that were read, -1 with EIO at the end of the channel.
    ssize_t was_read(int fd, std::span<const std::byte> events) noexcept;

    // closing() is called before the C library closes `fd`, for any fd that owns() accepts; duplicated() after it
    // copied `from` to `to`.
    void closing(int fd) noexcept;
    void duplicated(int from, int to) noexcept;

    // In a child of fork(): forgets the open files, which are the parent's, and releases nothing. Nothing can be opened
    // any more; the child makes a new kernel.
    void forget() noexcept;

    // In a child of fork(), on its new kernel: makes device files of its own behind the descriptors that it inherited.
    // False when a thread of the parent was in a call at that moment.
    bool adopt(kernel& parents) noexcept;
    // On the parent's kernel, in the child: this descriptor was closed.
    void disown(int fd) noexcept;

    const sysfs_tree& files() const noexcept;

private:
    struct state;

    template <typename Dispatch>
    int call(int fd, int no_file, Dispatch dispatch) noexcept;

    std::unique_ptr<state> _state;
};

} // namespace ucxl::softhca

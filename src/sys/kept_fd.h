// A file descriptor that the library keeps for long. A program may close descriptors that it did not open, as daemons
// do, and then the number means another file, which is the program's: it is neither trusted nor closed here.
//
// Files without an inode of their own (eventfd(2) and the like, before Linux 6.9 also pidfd_open(2)) are told from
// others only, not from each other.
//
// Example: const kept_fd file(UCXL_TRY(make_memory_file(...))); ...; if (file.is_there()) { use(file.get()); }
#pragma once

#include "fd.h"

#include <cstdint>
#include <utility>

#include <sys/stat.h>

namespace ucxl
{

class kept_fd
{
public:
    kept_fd() = default;
    // Nothing, with errno, if the system does not tell which file it is.
    explicit kept_fd(owned_fd file)
    {
        struct stat status{};
        if (file && fstat(file.get(), &status) == 0) {
            _file   = std::move(file);
            _device = status.st_dev;
            _inode  = status.st_ino;
        }
    }
    kept_fd(kept_fd&&) noexcept = default;
    kept_fd& operator=(kept_fd&& other) noexcept
    {
        kept_fd moved(std::move(other));
        std::swap(_file, moved._file);
        std::swap(_device, moved._device);
        std::swap(_inode, moved._inode);
        return *this;
    }
    ~kept_fd() { close(); }

    // Whether there was a file in the beginning, and close() was not called.
    explicit operator bool() const { return static_cast<bool>(_file); }
    // Whether the number still means it. A system call.
    bool is_there() const noexcept
    {
        struct stat status{};
        return _file && fstat(_file.get(), &status) == 0 && status.st_dev == _device && status.st_ino == _inode;
    }
    int get() const { return _file.get(); }
    const owned_fd& file() const { return _file; }
    // Of the file, as stat(2) tells them, also after close().
    std::uint64_t device() const { return _device; }
    std::uint64_t inode() const { return _inode; }
    void close() noexcept
    {
        if (!is_there()) {
            _file.release();
        }
        _file = {};
    }

private:
    owned_fd _file;
    std::uint64_t _device = 0;
    std::uint64_t _inode  = 0;
};

} // namespace ucxl

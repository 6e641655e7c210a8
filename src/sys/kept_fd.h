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
#include <optional>
#include <utility>

#include <sys/stat.h>

namespace ucxl
{

// Which file a descriptor means, as stat(2) tells it.
struct file_identity {
    std::uint64_t device = 0;
    std::uint64_t inode  = 0;

    bool operator==(const file_identity&) const = default;

    // Nothing, with errno, if the system does not tell. A system call.
    static std::optional<file_identity> of(int fd) noexcept
    {
        struct stat status{};
        return fstat(fd, &status) == 0 ? std::optional(file_identity{status.st_dev, status.st_ino}) : std::nullopt;
    }
};

class kept_fd
{
public:
    kept_fd() = default;
    // Nothing, with errno, if the system does not tell which file it is.
    explicit kept_fd(owned_fd file)
    {
        if (const auto identity = file ? file_identity::of(file.get()) : std::nullopt) {
            _file     = std::move(file);
            _identity = *identity;
        }
    }
    kept_fd(kept_fd&&) noexcept = default;
    kept_fd& operator=(kept_fd&& other) noexcept
    {
        kept_fd moved(std::move(other));
        std::swap(_file, moved._file);
        std::swap(_identity, moved._identity);
        return *this;
    }
    ~kept_fd() { close(); }

    // Whether there was a file in the beginning, and close() was not called.
    explicit operator bool() const { return static_cast<bool>(_file); }
    // Whether the number still means it. A system call.
    bool is_there() const noexcept { return _file && file_identity::of(_file.get()) == _identity; }
    int get() const { return _file.get(); }
    const owned_fd& file() const { return _file; }
    // Of the file, as stat(2) tells them, also after close().
    std::uint64_t device() const { return _identity.device; }
    std::uint64_t inode() const { return _identity.inode; }
    void close() noexcept
    {
        if (!is_there()) {
            _file.release();
        }
        _file = {};
    }

private:
    owned_fd _file;
    file_identity _identity;
};

} // namespace ucxl

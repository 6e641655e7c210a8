// A file descriptor that is closed with its owner.
//
// Example: const owned_fd file(open(path, O_RDONLY | O_CLOEXEC)); if (!file) { return fail_errno(path); }
#pragma once

#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace ucxl
{

class owned_fd
{
public:
    owned_fd() = default;
    // What open() and the like return: -1 is none.
    explicit owned_fd(int fd) : _fd(fd) {}
    owned_fd(owned_fd&& other) noexcept : _fd(other.release()) {}
    owned_fd& operator=(owned_fd&& other) noexcept
    {
        owned_fd moved(std::move(other));
        std::swap(_fd, moved._fd);
        return *this;
    }
    ~owned_fd()
    {
        if (_fd >= 0) {
            close(_fd);
        }
    }

    explicit operator bool() const { return _fd >= 0; }
    int get() const { return _fd; }
    // The caller closes it.
    int release() noexcept { return std::exchange(_fd, -1); }

private:
    int _fd = -1;
};

// The same file under a number from 3 on: what a program writes to its standard output goes to number 1, also if the
// program closed that before the library opened the file. Nothing, with errno, if there is no other number.
inline owned_fd above_standard_ones(owned_fd file)
{
    constexpr int first = STDERR_FILENO + 1;
    return file && file.get() < first ? owned_fd(fcntl(file.get(), F_DUPFD_CLOEXEC, first)) : std::move(file);
}

} // namespace ucxl

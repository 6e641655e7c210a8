#include "file.h"

#include "ucs/window/arena.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <format>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

using proc_path = std::array<char, 48>;

// O_PATH: opening a pipe or a device could wait, or do something; this does not, and holds the file for the checks.
result<int> open_handle(const proc_path& path, std::uint64_t inode)
{
    const int handle = ::open(path.data(), O_PATH | O_CLOEXEC);
    if (handle < 0) {
        return fail(errc::invalid_param, std::format("{}: {}", path.data(), std::strerror(errno)));
    }
    struct stat about{};
    struct statfs system{};
    const bool is_ours = fstat(handle, &about) == 0 && fstatfs(handle, &system) == 0 && S_ISREG(about.st_mode) &&
                         system.f_type == TMPFS_MAGIC && about.st_ino == inode && about.st_uid == geteuid();
    if (!is_ours) {
        close(handle);
        return fail(errc::invalid_param, std::format("{} is not the file of the key", path.data()));
    }
    return handle;
}

} // namespace

result<peer_file> peer_file::open(pid_t pid, int fd, std::uint64_t inode, int access)
{
    proc_path path;
    std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", pid, fd);
    const auto handle = open_handle(path, inode);
    if (!handle) {
        return std::unexpected(handle.error());
    }
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", *handle);
    const int opened = ::open(path.data(), access | O_CLOEXEC);
    const int reason = errno;
    close(*handle);
    if (opened < 0) {
        return fail(errc::invalid_param, std::format("a file of a peer: {}", std::strerror(reason)));
    }
    return peer_file(opened);
}

peer_file::peer_file(peer_file&& other) noexcept : _fd(std::exchange(other._fd, -1))
{
}

peer_file::~peer_file()
{
    if (_fd >= 0) {
        close(_fd);
    }
}

std::uint64_t peer_file::length() const
{
    struct stat about{};
    return fstat(_fd, &about) == 0 ? static_cast<std::uint64_t>(about.st_size) : 0;
}

bool peer_file::keeps_its_length() const
{
    const int seals = fcntl(_fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

bool peer_file::read(std::uint64_t offset, std::span<std::byte> into) const
{
    while (!into.empty()) {
        const ssize_t some = pread(_fd, into.data(), into.size(), static_cast<off_t>(offset));
        if (some <= 0) {
            return false;
        }
        offset += static_cast<std::uint64_t>(some);
        into = into.subspan(static_cast<std::size_t>(some));
    }
    return true;
}

result<peer_mapping> peer_mapping::map(const peer_file& file, std::uint64_t length)
{
    return map_pages(file, 0, length, PROT_READ | PROT_WRITE);
}

result<peer_mapping> peer_mapping::map_around(const peer_file& file, std::uint64_t offset, std::uint64_t length)
{
    const std::uint64_t into = offset % page_length();
    return map_pages(file, offset - into, into + length, PROT_READ);
}

result<peer_mapping> peer_mapping::map_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length,
                                             int protection)
{
    const std::uint64_t all = file.length();
    if (length == 0 || !file.keeps_its_length() || offset > all || length > all - offset) {
        return fail(errc::invalid_param, "the memory of a peer is shorter than its key says, or could become so");
    }
    void* start = mmap(nullptr, length, protection, MAP_SHARED, file.fd(), static_cast<off_t>(offset));
    if (start == MAP_FAILED) {
        return fail(errc::no_memory, std::format("mapping {} bytes of a peer: {}", length, std::strerror(errno)));
    }
    return peer_mapping(static_cast<std::byte*>(start), length);
}

peer_mapping::peer_mapping(peer_mapping&& other) noexcept
    : _start(std::exchange(other._start, nullptr)), _length(other._length)
{
}

peer_mapping::~peer_mapping()
{
    if (_start != nullptr) {
        munmap(_start, _length);
    }
}

} // namespace ucxl

#include "peer_file.h"

#include "memory_file.h"
#include "pages.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <format>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

using proc_path = std::array<char, 48>;

// O_PATH, because opening a pipe or a device could block or have effects. O_PATH has neither, and holds the file for
// the checks.
result<owned_fd> open_handle(const proc_path& path, std::uint64_t inode, std::optional<std::uint64_t> device)
{
    owned_fd handle(open(path.data(), O_PATH | O_CLOEXEC));
    if (!handle) {
        return fail(errc::invalid_param, std::format("{}: {}", path.data(), std::strerror(errno)));
    }
    struct stat status{};
    struct statfs system{};
    const bool is_ours = fstat(handle.get(), &status) == 0 && fstatfs(handle.get(), &system) == 0 &&
                         is_in_memory(status, system) && status.st_ino == inode &&
                         status.st_dev == device.value_or(status.st_dev) && status.st_uid == geteuid();
    if (!is_ours) {
        return fail(errc::invalid_param, std::format("{} is not the file of the key", path.data()));
    }
    return handle;
}

// Pages of the file may be longer than those of other memory (hugetlbfs).
result<owned_mapping> map_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length, int protection)
{
    const std::uint64_t file_length = file.length();
    if (length == 0 || offset > file_length || length > file_length - offset) {
        return fail(errc::invalid_param, "the memory of a peer is shorter than its key says");
    }
    const std::uint64_t page = file.page_length();
    if (page > page_length() && (offset % page != 0 || length % page != 0)) {
        return fail(errc::invalid_param, std::format("the memory of a peer is not in whole pages of {} bytes", page));
    }
    return owned_mapping::map_file(length, protection, file.fd(), offset, page);
}

result<owned_mapping> map_kept_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length, int protection)
{
    if (!file.keeps_its_memory()) {
        return fail(errc::invalid_param, "a file of a peer may lose memory");
    }
    return map_pages(file, offset, length, protection);
}

} // namespace

result<peer_file> peer_file::open(pid_t pid, int fd, std::uint64_t inode, int access,
                                  std::optional<std::uint64_t> device)
{
    proc_path path;
    std::snprintf(path.data(), path.size(), "/proc/%d/fd/%d", pid, fd);
    const owned_fd handle = UCXL_TRY(open_handle(path, inode, device));
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", handle.get());
    owned_fd file(::open(path.data(), access | O_CLOEXEC));
    if (!file) {
        return fail(errc::invalid_param, std::format("a file of a peer: {}", std::strerror(errno)));
    }
    return peer_file(std::move(file));
}

std::uint64_t peer_file::length() const
{
    struct stat status{};
    return fstat(_file.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::uint64_t peer_file::page_length() const
{
    struct stat status{};
    struct statfs system{};
    const bool is_known = fstat(_file.get(), &status) == 0 && fstatfs(_file.get(), &system) == 0;
    return is_known ? page_length_of(status, system) : ucxl::page_length();
}

result<owned_mapping> map_peer_memory(const peer_file& file, std::uint64_t offset, std::uint64_t length)
{
    return map_kept_pages(file, offset, length, PROT_READ | PROT_WRITE);
}

result<owned_mapping> map_peer_region(const peer_file& file, std::uint64_t offset, std::uint64_t length)
{
    return map_pages(file, offset, length, PROT_READ | PROT_WRITE);
}

result<owned_mapping> map_peer_pages(const peer_file& file, std::uint64_t offset, std::uint64_t length)
{
    const std::uint64_t into = offset % page_length();
    return map_kept_pages(file, offset - into, into + length, PROT_READ);
}

} // namespace ucxl

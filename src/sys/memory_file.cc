#include "memory_file.h"

#include "pages.h"
#include "resource_limit.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace ucxl
{

result<owned_fd> make_memory_file(const char* name, std::uint64_t length, int seals)
{
    if (has_limit(RLIMIT_FSIZE, length)) {
        return fail(errc::no_memory,
                    std::format("a file of {} bytes in memory is longer than RLIMIT_FSIZE allows (ulimit -f)", length));
    }
    owned_fd file = above_standard_ones(owned_fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)));
    if (!file || ftruncate(file.get(), static_cast<off_t>(length)) != 0 || fcntl(file.get(), F_ADD_SEALS, seals) != 0) {
        return fail(errc::no_memory, std::format("no file of {} bytes in memory: {}", length, std::strerror(errno)));
    }
    return file;
}

bool is_in_memory(const struct stat& file, const struct statfs& system)
{
    return S_ISREG(file.st_mode) && (system.f_type == TMPFS_MAGIC || system.f_type == HUGETLBFS_MAGIC);
}

bool keeps_its_memory(const owned_fd& file)
{
    const int seals = fcntl(file.get(), F_GET_SEALS);
    struct statfs system{};
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstatfs(file.get(), &system) == 0 &&
           system.f_type != HUGETLBFS_MAGIC;
}

std::uint64_t page_length_of(const struct stat& file, const struct statfs& system)
{
    return system.f_type == HUGETLBFS_MAGIC ? static_cast<std::uint64_t>(file.st_blksize) : page_length();
}

bool write_all(const owned_fd& file, std::uint64_t offset, std::span<const std::byte> bytes) noexcept
{
    while (!bytes.empty()) {
        const ssize_t written = pwrite(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written <= 0) {
            return false;
        }
        offset += static_cast<std::uint64_t>(written);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
}

bool read_all(const owned_fd& file, std::uint64_t offset, std::span<std::byte> bytes) noexcept
{
    while (!bytes.empty()) {
        const ssize_t count = pread(file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (count <= 0) {
            return false;
        }
        offset += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

} // namespace ucxl

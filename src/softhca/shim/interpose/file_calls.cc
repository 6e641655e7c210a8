// Calls that name a file.
#include "export.h"
#include "softhca/shim/system/libc_functions.h"
#include "virtual_files.h"

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/sysmacros.h>

using namespace ucxl::softhca;

namespace
{

bool takes_mode(int flags)
{
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

// The 64-bit forms are the same functions when file sizes have 64 bits.
#if defined(__LP64__)
struct stat& plain(struct stat64& into)
{
    return reinterpret_cast<struct stat&>(into);
}
static_assert(sizeof(struct stat) == sizeof(struct stat64));
#endif

#define MODE_ARGUMENT(flags)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (takes_mode(flags)) {                                                                                           \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

int open_any(int directory, const char* path, int flags, mode_t mode)
{
    if (const auto opened = open_virtual(directory, path, flags)) {
        return *opened;
    }
    return directory == AT_FDCWD ? libc().open(path, flags, mode) : libc().openat(directory, path, flags, mode);
}

FILE* fopen_any(const char* path, const char* mode)
{
    const bool reads = mode != nullptr && mode[0] == 'r' && std::strchr(mode, '+') == nullptr;
    const int flags  = (reads ? O_RDONLY : O_RDWR) | (mode != nullptr && std::strchr(mode, 'e') ? O_CLOEXEC : 0);
    const auto file  = open_virtual(AT_FDCWD, path, flags);
    if (!file) {
        return libc().fopen(path, mode);
    }
    return *file < 0 ? nullptr : ::fdopen(*file, mode);
}

int stat_any(int directory, const char* path, int flags, struct stat& into)
{
    if ((flags & AT_EMPTY_PATH) != 0 && path != nullptr && *path == '\0') {
        const auto done = fstat_virtual(directory, into);
        return done ? *done : libc().fstatat(directory, path, &into, flags);
    }
    const auto done = stat_virtual(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, into);
    return done ? *done : libc().fstatat(directory, path, &into, flags);
}

int fstat_any(int fd, struct stat& into)
{
    const auto done = fstat_virtual(fd, into);
    return done ? *done : libc().fstat(fd, &into);
}

void to_statx(const struct stat& from, struct statx& into)
{
    into                = {};
    into.stx_mask       = STATX_BASIC_STATS;
    into.stx_blksize    = static_cast<std::uint32_t>(from.st_blksize);
    into.stx_nlink      = static_cast<std::uint32_t>(from.st_nlink);
    into.stx_mode       = static_cast<std::uint16_t>(from.st_mode);
    into.stx_ino        = from.st_ino;
    into.stx_size       = static_cast<std::uint64_t>(from.st_size);
    into.stx_rdev_major = major(from.st_rdev);
    into.stx_rdev_minor = minor(from.st_rdev);
    into.stx_dev_major  = major(from.st_dev);
    into.stx_dev_minor  = minor(from.st_dev);
}

char* realpath_any(const char* path, char* into)
{
    const auto real = realpath_virtual(path);
    if (!real) {
        return libc().realpath(path, into);
    }
    if (real->empty()) {
        return nullptr;
    }
    return into == nullptr ? ::strdup(real->c_str()) : std::strcpy(into, real->c_str());
}

} // namespace

SOFTHCA_INTERPOSED int open(const char* path, int flags, ...)
{
    MODE_ARGUMENT(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

SOFTHCA_INTERPOSED int open64(const char* path, int flags, ...)
{
    MODE_ARGUMENT(flags)
    return open_any(AT_FDCWD, path, flags, mode);
}

SOFTHCA_INTERPOSED int openat(int directory, const char* path, int flags, ...)
{
    MODE_ARGUMENT(flags)
    return open_any(directory, path, flags, mode);
}

SOFTHCA_INTERPOSED int openat64(int directory, const char* path, int flags, ...)
{
    MODE_ARGUMENT(flags)
    return open_any(directory, path, flags, mode);
}

// For programs compiled with _FORTIFY_SOURCE.
SOFTHCA_INTERPOSED int __open_2(const char* path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

SOFTHCA_INTERPOSED int __open64_2(const char* path, int flags)
{
    return open_any(AT_FDCWD, path, flags, 0);
}

SOFTHCA_INTERPOSED int __openat_2(int directory, const char* path, int flags)
{
    return open_any(directory, path, flags, 0);
}

SOFTHCA_INTERPOSED int __openat64_2(int directory, const char* path, int flags)
{
    return open_any(directory, path, flags, 0);
}

SOFTHCA_INTERPOSED FILE* fopen(const char* path, const char* mode)
{
    return fopen_any(path, mode);
}

SOFTHCA_INTERPOSED FILE* fopen64(const char* path, const char* mode)
{
    return fopen_any(path, mode);
}

SOFTHCA_INTERPOSED int access(const char* path, int mode) noexcept
{
    const auto done = access_virtual(AT_FDCWD, path, mode);
    return done ? *done : libc().access(path, mode);
}

SOFTHCA_INTERPOSED int faccessat(int directory, const char* path, int mode, int flags) noexcept
{
    const auto done = access_virtual(directory, path, mode);
    return done ? *done : libc().faccessat(directory, path, mode, flags);
}

SOFTHCA_INTERPOSED int stat(const char* path, struct stat* into) noexcept
{
    return stat_any(AT_FDCWD, path, 0, *into);
}

SOFTHCA_INTERPOSED int lstat(const char* path, struct stat* into) noexcept
{
    return stat_any(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, *into);
}

SOFTHCA_INTERPOSED int fstat(int fd, struct stat* into) noexcept
{
    return fstat_any(fd, *into);
}

SOFTHCA_INTERPOSED int fstatat(int directory, const char* path, struct stat* into, int flags) noexcept
{
    return stat_any(directory, path, flags, *into);
}

SOFTHCA_INTERPOSED int stat64(const char* path, struct stat64* into) noexcept
{
    return stat_any(AT_FDCWD, path, 0, plain(*into));
}

SOFTHCA_INTERPOSED int lstat64(const char* path, struct stat64* into) noexcept
{
    return stat_any(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, plain(*into));
}

SOFTHCA_INTERPOSED int fstat64(int fd, struct stat64* into) noexcept
{
    return fstat_any(fd, plain(*into));
}

SOFTHCA_INTERPOSED int fstatat64(int directory, const char* path, struct stat64* into, int flags) noexcept
{
    return stat_any(directory, path, flags, plain(*into));
}

// For programs compiled for C libraries before 2.33. The first argument, the version of the structure, is always the
// current one.
SOFTHCA_INTERPOSED int __xstat(int, const char* path, struct stat* into) noexcept
{
    return stat_any(AT_FDCWD, path, 0, *into);
}

SOFTHCA_INTERPOSED int __lxstat(int, const char* path, struct stat* into) noexcept
{
    return stat_any(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, *into);
}

SOFTHCA_INTERPOSED int __fxstat(int, int fd, struct stat* into) noexcept
{
    return fstat_any(fd, *into);
}

SOFTHCA_INTERPOSED int __xstat64(int, const char* path, struct stat64* into) noexcept
{
    return stat_any(AT_FDCWD, path, 0, plain(*into));
}

SOFTHCA_INTERPOSED int __lxstat64(int, const char* path, struct stat64* into) noexcept
{
    return stat_any(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, plain(*into));
}

SOFTHCA_INTERPOSED int __fxstat64(int, int fd, struct stat64* into) noexcept
{
    return fstat_any(fd, plain(*into));
}

SOFTHCA_INTERPOSED int statx(int directory, const char* path, int flags, unsigned mask, struct statx* into) noexcept
{
    struct stat found{};
    const bool by_fd = (flags & AT_EMPTY_PATH) != 0 && (path == nullptr || *path == '\0');
    const auto done  = by_fd ? fstat_virtual(directory, found)
                             : stat_virtual(directory, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, found);
    if (!done) {
        return libc().statx(directory, path, flags, mask, into);
    }
    if (*done == 0) {
        to_statx(found, *into);
    }
    return *done;
}

SOFTHCA_INTERPOSED ssize_t readlink(const char* path, char* into, size_t room) noexcept
{
    const auto done = readlink_virtual(AT_FDCWD, path, into, room);
    return done ? *done : libc().readlink(path, into, room);
}

SOFTHCA_INTERPOSED ssize_t readlinkat(int directory, const char* path, char* into, size_t room) noexcept
{
    const auto done = readlink_virtual(directory, path, into, room);
    return done ? *done : libc().readlinkat(directory, path, into, room);
}

SOFTHCA_INTERPOSED ssize_t __readlink_chk(const char* path, char* into, size_t room, size_t size)
{
    if (room > size) {
        std::abort();
    }
    return readlink(path, into, room);
}

SOFTHCA_INTERPOSED char* realpath(const char* path, char* into) noexcept
{
    return realpath_any(path, into);
}

SOFTHCA_INTERPOSED char* __realpath_chk(const char* path, char* into, size_t)
{
    return realpath_any(path, into);
}

SOFTHCA_INTERPOSED char* canonicalize_file_name(const char* path) noexcept
{
    return realpath_any(path, nullptr);
}

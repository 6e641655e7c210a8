#include "shown_file.h"

#include "descriptor_shortage.h"
#include "sys/mapped_ranges.h"

#include <format>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

namespace ucxl
{

namespace
{

// The file of that name, if it is the one of the range.
owned_fd open_if_same(const std::string& name, const mapped_range& range)
{
    owned_fd file(open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status{};
    const bool is_same = file && fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) &&
                         status.st_dev == range.device && status.st_ino == range.inode;
    return is_same ? std::move(file) : owned_fd();
}

// The first descriptor of the process that is of the file.
owned_fd find_descriptor(const mapped_range& range)
{
    DIR* const listing = opendir("/proc/self/fd");
    owned_fd found;
    while (const dirent* const entry = listing != nullptr ? readdir(listing) : nullptr) {
        struct stat status{};
        const int fd = std::atoi(entry->d_name);
        if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == range.device &&
            status.st_ino == range.inode && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR) {
            found = owned_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
            break;
        }
    }
    if (listing != nullptr) {
        closedir(listing);
    }
    return found;
}

owned_fd open_file_of(const mapped_range& range)
{
    if (owned_fd named = open_if_same(range.name, range)) {
        return named;
    }
    if (owned_fd held = find_descriptor(range)) {
        return held;
    }
    // Of a file without a name and without a descriptor; only privileged processes may open it so.
    return owned_fd(
        open(std::format("/proc/self/map_files/{:x}-{:x}", range.start, range.end).c_str(), O_RDWR | O_CLOEXEC));
}

} // namespace

result<shown_file> shown_file::find(const std::byte* start, std::uint64_t length)
{
    const auto first  = reinterpret_cast<std::uintptr_t>(start);
    const auto ranges = mapped_ranges_of(0, {first, first + length}, false);
    if (ranges.empty() || ranges.front().start > first) {
        return fail_or_no_descriptor(std::format("nothing is mapped at {:#x}, or the system does not tell", first));
    }
    const mapped_range& range = ranges.front();
    if (!range.is_shared() || range.inode == 0) {
        return fail(errc::invalid_param,
                    std::format("the memory at {:#x} is private to the process; it can be moved into a file "
                                "(UCP_LAYOUT_MEMORY_FLAG_MOVE)",
                                first));
    }
    owned_fd file = open_file_of(range);
    if (!file) {
        return fail_or_no_descriptor(
            std::format("the file of the memory at {:#x}, {}, has no name any more that leads to it, and no descriptor "
                        "of it is open for reading and writing: pass one",
                        first, range.name));
    }
    return shown_file(std::move(file), range.file_offset_of(first));
}

} // namespace ucxl

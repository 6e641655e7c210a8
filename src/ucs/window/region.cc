#include "region.h"

#include "reader_section.h"
#include "window.h"

#include "sys/fork.h"
#include "sys/memory_file.h"
#include "sys/pages.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <format>
#include <iterator>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

namespace ucxl
{

namespace
{

// A last part that fills most of a huge page gets all of it.
std::uint64_t round_to_huge_pages(std::uint64_t length)
{
    const std::uint64_t huge = huge_page_length();
    const std::uint64_t part = huge == 0 ? 0 : length % huge;
    return part >= huge - huge / 4 ? length - part + huge : length;
}

struct shown_file {
    dev_t device;
    ino_t inode;
};

// Whether all of the memory shows the file in order from `offset` on, and is shared. The kernel lists mappings by
// address.
bool shows_file(std::uintptr_t start, std::uintptr_t end, const shown_file& file, std::uint64_t offset)
{
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    if (maps == nullptr) {
        return false;
    }
    std::uintptr_t at = start;
    std::array<char, 512> line;
    while (at < end && std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
        std::uint64_t first = 0, last = 0, place = 0, inode = 0;
        unsigned major = 0, minor = 0;
        std::array<char, 5> access{};
        const int found = std::sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64, &first,
                                      &last, access.data(), &place, &major, &minor, &inode);
        if (found == 7 && first <= at && at < last) {
            if (access[3] != 's' || makedev(major, minor) != file.device || inode != file.inode ||
                place + (at - first) != offset + (at - start)) {
                return false;
            }
            at = last;
        }
        // The rest of a line that has a long path.
        while (line[std::char_traits<char>::length(line.data()) - 1] != '\n' &&
               std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
        }
    }
    return at >= end;
}

} // namespace

result<void> region::learn_inode()
{
    struct stat status{};
    if (fstat(_file.get(), &status) != 0) {
        return fail(errc::invalid_param, std::format("the file of shared memory: {}", std::strerror(errno)));
    }
    _inode = status.st_ino;
    return {};
}

result<region_ptr> region::allocate(std::uint64_t length, huge_pages_option huge_pages)
{
    const bool are_huge = huge_pages != huge_pages_option::never;
    length              = round_to_pages(std::max<std::uint64_t>(length, 1));
    if (are_huge) {
        length = round_to_huge_pages(length);
    }
    std::shared_ptr<region> made(new region);
    made->_file    = UCXL_TRY(make_memory_file("ucx_layout", length, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    made->_mapping = UCXL_TRY(owned_mapping::map_file(length, PROT_READ | PROT_WRITE, made->_file.get(), 0));
    if (are_huge) {
        auto filled = fill_with_huge_pages(made->_mapping.start(), length);
        if (!filled && huge_pages == huge_pages_option::always) {
            return std::unexpected(std::move(filled.error()));
        }
    }
    made->_start  = made->_mapping.start();
    made->_length = length;
    UCXL_TRY(made->learn_inode());
    return made;
}

result<region_ptr> region::share(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset)
{
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    if (length == 0 || first % page_length() != 0 || offset % page_length() != 0 || first > UINTPTR_MAX - length ||
        offset > static_cast<std::uint64_t>(INT64_MAX) - length) {
        return fail(errc::invalid_param,
                    std::format("shared memory of {} bytes at {:#x}, from offset {} of its file on: "
                                "start and offset have to be at page boundaries of {} bytes",
                                length, first, offset, page_length()));
    }
    std::shared_ptr<region> made(new region);
    made->_file = owned_fd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    struct stat status{};
    struct statfs system{};
    if (!made->_file || fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0) {
        return fail(errc::invalid_param, std::format("the file of shared memory: {}", std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode) || system.f_type != TMPFS_MAGIC) {
        return fail(errc::invalid_param, "the file of shared memory is not in memory (memfd_create(2))");
    }
    if (static_cast<std::uint64_t>(status.st_size) < offset + length) {
        return fail(errc::invalid_param, std::format("the file of shared memory has {} bytes, and {} are needed",
                                                     status.st_size, offset + length));
    }
    // Sealed already, or sealed now.
    const int seals = fcntl(made->_file.get(), F_GET_SEALS);
    if ((seals < 0 || (seals & F_SEAL_SHRINK) == 0) && fcntl(made->_file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        return fail(errc::invalid_param, "the file of shared memory may become shorter under a peer, and cannot be "
                                         "sealed: make it with MFD_ALLOW_SEALING (memfd_create(2))");
    }
    if (!shows_file(first, first + length, {status.st_dev, status.st_ino}, offset)) {
        return fail(errc::invalid_param, std::format("the {} bytes at {:#x} are not a shared mapping of the file from "
                                                     "offset {} on",
                                                     length, first, offset));
    }
    made->_start       = start;
    made->_length      = length;
    made->_inode       = status.st_ino;
    made->_file_offset = offset;
    return made;
}

// Never destroyed: destructors that run later may look for regions.
region_table& region_table::instance()
{
    static region_table& only = *[] {
        window_registry::hold_lock_over_fork(); // with the list of reader sections, which is locked under this lock
        auto* const made = new region_table;
        hold_over_fork<[]() -> std::mutex& { return instance()._lock; }>();
        return made;
    }();
    return only;
}

region_table::~region_table()
{
    delete _now.load();
}

result<void> region_table::add(const region_ptr& added)
{
    const auto start = reinterpret_cast<std::uintptr_t>(added->start());
    const entry made{start, start + added->length(), added};
    const std::lock_guard guard(_lock);
    const snapshot* const before = _now.load();
    auto after                   = std::make_unique<snapshot>();
    if (before != nullptr) {
        std::ranges::copy_if(*before, std::back_inserter(*after), [](const entry& known) {
            const region_ptr held = known.held.lock();
            return held != nullptr && !held->is_withdrawn();
        });
    }
    const auto place = std::ranges::upper_bound(*after, start, {}, &entry::start);
    if ((place != after->end() && place->start < made.end) || (place != after->begin() && place[-1].end > start)) {
        return fail(errc::invalid_param,
                    std::format("some of the {} bytes at {:#x} are shared memory already", added->length(), start));
    }
    after->insert(place, made);
    _now.store(after.release());
    wait_for_readers();
    delete before;
    return {};
}

region_ptr region_table::find(const void* address, std::uint64_t length) const
{
    const reader_section section;
    const snapshot* const now = _now.load();
    if (now == nullptr) {
        return nullptr;
    }
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    const auto next  = std::ranges::upper_bound(*now, first, {}, &entry::start);
    if (next == now->begin() || length > next[-1].end - std::min(first, next[-1].end)) {
        return nullptr;
    }
    region_ptr found = next[-1].held.lock();
    return found != nullptr && !found->is_withdrawn() ? found : nullptr;
}

} // namespace ucxl

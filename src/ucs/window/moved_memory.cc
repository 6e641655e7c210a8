#include "moved_memory.h"

#include "descriptor_shortage.h"
#include "sys/fd.h"
#include "sys/mapped_ranges.h"
#include "sys/mapping.h"
#include "sys/memory_file.h"
#include "sys/pages.h"
#include "sys/resource_limit.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <format>
#include <fstream>
#include <span>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

// Bytes of this process that devices have pinned (proc_pid_status(5)). The system does not tell which ones.
std::uint64_t pinned_bytes()
{
    std::ifstream status("/proc/self/status");
    constexpr std::string_view name = "VmPin:";
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(name)) {
            const auto digit        = line.find_first_of("0123456789");
            std::uint64_t kilobytes = 0;
            if (digit != line.npos) {
                std::from_chars(line.data() + digit, line.data() + line.size(), kilobytes);
            }
            return kilobytes << 10;
        }
    }
    return 0;
}

struct obstacle {
    const char* flag; // of proc_pid_smaps(5)
    const char* meaning;
};

constexpr obstacle obstacles[] = {
    {"lo", "locked (mlock(2))"},
    {"gd", "a stack that grows"},
    {"io", "memory of a device"},
    {"pf", "memory of a device"},
    {"mm", "memory of a device"},
    {"ht", "in pages of hugetlbfs, which is shared by its file"},
    {"dc", "not inherited by children (MADV_DONTFORK), as memory is that a device has registered"},
    {"wf", "erased in children (MADV_WIPEONFORK)"},
    {"um", "watched by userfaultfd(2)"},
    {"uw", "watched by userfaultfd(2)"},
};

std::optional<std::string> why_not_moved(const mapped_range& range)
{
    if (range.is_shared()) {
        return "shared already: pass its file, or its address without UCP_LAYOUT_MEMORY_FLAG_MOVE";
    }
    if (range.access[0] != 'r' || range.access[1] != 'w' || range.access[2] == 'x') {
        return std::format("mapped as {}, not for reading and writing only", range.access.data());
    }
    if (range.name.starts_with("[stack")) {
        return "a stack";
    }
    for (const auto& [flag, meaning] : obstacles) {
        if (range.has_flag(flag)) {
            return meaning;
        }
    }
    return std::nullopt;
}

// The system names the stack of the first thread only. Of those of others this one is known.
bool is_on_own_stack(std::uintptr_t start, std::uintptr_t end)
{
    pthread_attr_t attributes;
    void* stack        = nullptr;
    std::size_t length = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
        return false;
    }
    const bool is_known = pthread_attr_getstack(&attributes, &stack, &length) == 0;
    pthread_attr_destroy(&attributes);
    const auto first = reinterpret_cast<std::uintptr_t>(stack);
    return is_known && start < first + length && first < end;
}

} // namespace

std::optional<std::string> why_not_moved(std::uintptr_t start, std::uintptr_t end)
{
    if (is_on_own_stack(start, end)) {
        return std::format("the memory at {:#x} is a stack", start);
    }
    std::uintptr_t at = start;
    for (const mapped_range& range : mapped_ranges_of(0, {start, end}, true)) {
        if (range.start > at) {
            break;
        }
        if (const auto reason = why_not_moved(range)) {
            return std::format("the memory at {:#x} is {}", std::max<std::uint64_t>(range.start, start), *reason);
        }
        at = range.end;
    }
    if (at < end) {
        return std::format("nothing is mapped at {:#x}, or the system does not tell", at);
    }
    if (const std::uint64_t pinned = pinned_bytes(); pinned != 0) {
        return std::format("devices have {} bytes of this process registered, and the system does not tell which: "
                           "move memory before",
                           pinned);
    }
    return std::nullopt;
}

namespace
{

// Whole pages, with what else is on them: memory of other threads, and with AddressSanitizer memory that nobody may
// touch. It looks at all that memcpy() reads, whoever calls it.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] void copy_pages(std::byte* to, std::uintptr_t from,
                                                                      std::size_t length)
{
    std::array<std::uint64_t, 4> words; // as long as the compiler copies without a call
    for (std::size_t at = 0; at < length; at += sizeof(words)) {
        __builtin_memcpy(&words, reinterpret_cast<const std::byte*>(from) + at, sizeof(words));
        __builtin_memcpy(to + at, &words, sizeof(words));
        asm volatile("" : : : "memory"); // or it makes a call of memcpy() of the loop
    }
}

// Those pages of private memory without a file that were touched; the others are zeros, and so are those of the file.
void copy_touched(std::byte* to, std::uintptr_t start, std::uintptr_t end, const owned_fd& pagemap)
{
    constexpr std::uint64_t exists = std::uint64_t{3} << 62; // in memory or swapped out: proc_pid_pagemap(5)
    const std::uintptr_t page      = page_length();
    std::array<std::uint64_t, 512> entries;
    for (std::uintptr_t at = start; at < end;) {
        const std::size_t number = std::min<std::size_t>(entries.size(), (end - at) / page);
        const bool is_told       = pagemap && pread(pagemap.get(), entries.data(), number * sizeof(entries[0]),
                                                    static_cast<off_t>(at / page * sizeof(entries[0]))) ==
                                            static_cast<ssize_t>(number * sizeof(entries[0]));
        for (std::size_t i = 0; i < number; ++i, at += page) {
            if (!is_told || (entries[i] & exists) != 0) {
                copy_pages(to + (at - start), at, page);
            }
        }
    }
}

// Memory that nobody used yet, such as most of a large array, stays without pages.
result<void> copy_existing(std::byte* to, std::uintptr_t first, std::uintptr_t end,
                           std::span<const mapped_range> ranges)
{
    const owned_fd pagemap(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    std::uintptr_t start = first;
    for (const mapped_range& range : ranges) {
        if (range.start > start) {
            break;
        }
        const std::uintptr_t stop = std::min<std::uint64_t>(range.end, end);
        if (range.inode == 0) {
            copy_touched(to + (start - first), start, stop, pagemap);
        } else {
            copy_pages(to + (start - first), start, stop - start);
        }
        start = stop;
    }
    // What is not copied would be zeros afterwards.
    if (start < end) {
        return fail_or_no_descriptor(std::format("the system does not tell any more what is mapped at {:#x}", start));
    }
    return {};
}

} // namespace

result<moved_memory> move_into_file(std::byte* start, std::uint64_t length, bool takes_huge_pages)
{
    const std::uintptr_t page  = page_length();
    const auto address         = reinterpret_cast<std::uintptr_t>(start);
    const std::uintptr_t first = address / page * page;
    if (address > UINTPTR_MAX - length - page) {
        return fail(errc::invalid_param, std::format("{} bytes at {:#x} are no memory", length, address));
    }
    const std::uintptr_t end = round_to_pages(address + length);
    if (const auto reason = why_not_moved(first, end)) {
        return fail_or_no_descriptor(*reason);
    }
    // The file begins with a hole, so that its huge pages lie as those of the addresses.
    const std::uint64_t huge   = huge_page_length();
    const std::uint64_t offset = huge == 0 ? 0 : first % huge;
    const std::uint64_t bytes  = end - first;
    auto file = UCXL_TRY(make_memory_file("ucx_layout", offset + bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL));
    const auto copy = UCXL_TRY(owned_mapping::map_file(bytes, PROT_READ | PROT_WRITE, file.get(), offset));
    if (takes_huge_pages) {
        static_cast<void>(fill_with_huge_pages(copy.start(), bytes)); // else small ones
    }
    auto* const place = reinterpret_cast<std::byte*>(first);
    // Nothing is allocated or freed from the copy on until the file is there: it may be in these very pages.
    const auto ranges = mapped_ranges_of(0, {first, end}, false);
    UCXL_TRY(copy_existing(copy.start(), first, end, ranges));
    // By the C library, so that UCX and others that watch it forget what they know of these addresses.
    if (mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), static_cast<off_t>(offset)) ==
        MAP_FAILED) {
        return fail(errc::no_memory, std::format("mapping {} bytes at {:#x}: {}", bytes, first, std::strerror(errno)));
    }
    return moved_memory{std::move(file), place, bytes, offset};
}

namespace
{

constexpr int privately = MAP_PRIVATE | MAP_FIXED;

// What the memory holds, at the same offset of a file of its own. By system calls alone, as in make_private_in_child().
owned_fd copy_to_file(const std::byte* start, std::uint64_t length, std::uint64_t offset)
{
    if (has_limit(RLIMIT_FSIZE, offset + length)) {
        return {};
    }
    owned_fd file(static_cast<int>(syscall(SYS_memfd_create, "ucx_layout", MFD_CLOEXEC)));
    for (std::uint64_t done = 0; file && done < length;) {
        const long count = syscall(SYS_pwrite64, file.get(), start + done, length - done, offset + done);
        if (count > 0) {
            done += static_cast<std::uint64_t>(count);
        } else if (count == 0 || errno != EINTR) {
            return {};
        }
    }
    return file;
}

// Calls map(fd) with the file, or with a copy of it.
template <typename Map>
void map_privately(const std::byte* start, std::uint64_t length, int fd, std::uint64_t offset, Map map)
{
    if (fd >= 0) {
        map(fd);
    } else if (const owned_fd copy = copy_to_file(start, length, offset)) {
        map(copy.get());
    }
}

} // namespace

void make_private(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset) noexcept
{
    map_privately(start, length, fd, offset, [&](int file) {
        mmap(start, length, PROT_READ | PROT_WRITE, privately, file, static_cast<off_t>(offset));
    });
}

void make_private_in_child(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset) noexcept
{
    map_privately(start, length, fd, offset,
                  [&](int file) { syscall(SYS_mmap, start, length, PROT_READ | PROT_WRITE, privately, file, offset); });
}

} // namespace ucxl

#include "piece_copy.h"

#include "kernel_call.h"
#include "sys/resource_limit.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/sysinfo.h>

namespace ucxl::heap
{

namespace
{

// Once more where a signal was handled instead: that says nothing of the memory.
template <typename... Arguments>
long call_again(long number, Arguments... arguments)
{
    long done = -1;
    do {
        done = call(number, arguments...);
    } while (done == -1 && errno == EINTR);
    return done;
}

// By a system call: programs protect pages of their blocks, and to read these would be a fault.
bool read_all(int fd, off_t from, std::byte* to, std::size_t length)
{
    while (length > 0) {
        const long done = call_again(SYS_pread64, fd, to, length, from);
        if (done <= 0) {
            return false;
        }
        from += done;
        to += done;
        length -= static_cast<std::size_t>(done);
    }
    return true;
}

bool copy_all(int fd, off_t from, int to_fd, off_t to, std::size_t length)
{
    while (length > 0) {
        const long done = call_again(SYS_copy_file_range, fd, &from, to_fd, &to, length, 0U);
        if (done <= 0) {
            return false;
        }
        length -= static_cast<std::size_t>(done);
    }
    return true;
}

// Calls visit(offset from `first`, length) for what is not a hole, as long as it returns true. False if it did not, or
// if the file cannot be read: another thread may close it.
template <typename Visitor>
bool for_each_data(int fd, std::uint64_t first, std::size_t length, Visitor visit)
{
    const auto begin = static_cast<off_t>(first), end = begin + static_cast<off_t>(length);
    for (off_t hole = begin; hole < end;) {
        const off_t data = lseek(fd, hole, SEEK_DATA);
        if (data >= end || (data < 0 && errno == ENXIO)) {
            return true; // nothing but a hole
        }
        hole = std::min<off_t>(lseek(fd, data, SEEK_HOLE), end);
        if (data < 0 || hole < data ||
            !visit(static_cast<std::size_t>(data - begin), static_cast<std::size_t>(hole - data))) {
            return false;
        }
    }
    return true;
}

// Whether the huge pages that the data lie in have little else.
bool is_dense(int fd, std::uint64_t first, std::size_t length)
{
    std::size_t bytes = 0, in_pages = 0, seen = 0;
    const bool is_known = for_each_data(fd, first, length, [&](std::size_t data, std::size_t number) {
        const std::size_t begin = std::max(seen, data & ~(huge_page - 1));
        seen                    = (data + number + huge_page - 1) & ~(huge_page - 1);
        in_pages += seen - begin;
        bytes += number;
        return true;
    });
    return is_known && bytes >= in_pages / 8 * 7;
}

bool is_swap_in_use()
{
    struct sysinfo system{};
    return sysinfo(&system) != 0 || system.freeswap != system.totalswap;
}

// Without the file nobody knows where the holes are, and to read one allocates it. What is not in memory is a hole, or
// was swapped, for which the copy itself may be the reason. By a second mapping, in which no page is protected.
bool copy_pages(std::byte* start, std::size_t length, std::byte* to)
{
    std::byte* const readable = to_memory(call(SYS_mremap, start, std::size_t{0}, length, MREMAP_MAYMOVE));
    if (readable == nullptr) {
        return false;
    }
    bool is_done     = call(SYS_mprotect, readable, length, PROT_READ) == 0;
    const auto page  = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    bool has_swapped = false;
    unsigned char in_memory[huge_page / 4096];
    for (std::size_t first = 0; is_done && first < length; first += huge_page) {
        is_done     = call(SYS_mincore, readable + first, huge_page, in_memory) == 0;
        has_swapped = has_swapped || is_swap_in_use(); // asked after mincore()
        for (std::size_t at = 0; is_done && at < huge_page; at += page) {
            if (has_swapped || (in_memory[at / page] & 1) != 0) {
                std::memcpy(to + first + at, readable + first + at, page);
            }
        }
    }
    call(SYS_munmap, readable, length);
    return is_done;
}

} // namespace

void piece_copy::make(std::byte* start, std::size_t length, const own_file& file, std::uint64_t file_offset)
{
    _length = length;
    if (!copy_to_memory(start, file, file_offset) && !copy_to_file(file, file_offset)) {
        drop();
    }
}

bool piece_copy::copy_to_memory(std::byte* start, const own_file& file, std::uint64_t file_offset)
{
    _memory = to_memory(
        call(SYS_mmap, nullptr, _length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (_memory == nullptr) {
        return false;
    }
    const bool has_file = file.is_open();
    // With huge pages it takes a third of the time. They would fill the holes of a sparse piece.
    call(SYS_madvise, _memory, _length,
         has_file && is_dense(file.fd, file_offset, _length) ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    const auto read = [&](std::size_t data, std::size_t number) {
        return read_all(file.fd, static_cast<off_t>(file_offset + data), _memory + data, number);
    };
    if ((has_file && for_each_data(file.fd, file_offset, _length, read)) || copy_pages(start, _length, _memory)) {
        return true;
    }
    drop();
    return false;
}

// A file takes no addresses here, and in the child those of the piece.
bool piece_copy::copy_to_file(const own_file& file, std::uint64_t file_offset)
{
    if (!file.is_open() || has_limit(RLIMIT_FSIZE, _length)) {
        return false;
    }
    _fd              = static_cast<int>(call(SYS_memfd_create, "ucx_layout_heap_copy", MFD_CLOEXEC));
    const auto write = [&](std::size_t data, std::size_t number) {
        return copy_all(file.fd, static_cast<off_t>(file_offset + data), _fd, static_cast<off_t>(data), number);
    };
    return _fd >= 0 && ftruncate(_fd, static_cast<off_t>(_length)) == 0 &&
           for_each_data(file.fd, file_offset, _length, write);
}

bool piece_copy::put(std::size_t offset, std::size_t length, std::byte* at) const
{
    if (_memory != nullptr) {
        return call(SYS_mremap, _memory + offset, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, at) != -1;
    }
    return _fd >= 0 && call(SYS_mmap, at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, _fd,
                            static_cast<off_t>(offset)) != -1;
}

void piece_copy::drop()
{
    if (_memory != nullptr) {
        call(SYS_munmap, _memory, _length); // where parts have moved, nothing is left
        _memory = nullptr;
    }
    if (_fd >= 0) {
        close(_fd);
        _fd = -1;
    }
}

} // namespace ucxl::heap

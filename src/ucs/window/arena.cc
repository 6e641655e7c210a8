#include "arena.h"

#include "slot_table.h"

#include "uct/abi/memory_types.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

constexpr int reserved_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

} // namespace

std::size_t page_length()
{
    static const auto length = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return length;
}

std::uint64_t round_to_pages(std::uint64_t length)
{
    return (length + page_length() - 1) & ~std::uint64_t{page_length() - 1};
}

result<std::unique_ptr<arena>> arena::reserve(std::size_t length)
{
    constexpr std::size_t slot = slot_table::slot_length;
    if (length < slot) {
        return fail(errc::invalid_param, "UCX_LAYOUT_ARENA_SIZE is " + std::to_string(length) + " bytes; at least " +
                                             std::to_string(slot) + " are needed");
    }
    std::size_t now         = std::min(length, slot_table::max_slots * slot) / slot * slot;
    const std::size_t least = std::min(now, min_length);
    for (;; now = now / 2 / slot * slot) {
        void* start = mmap(nullptr, now + 2 * margin, PROT_NONE, reserved_flags, -1, 0);
        if (start != MAP_FAILED) {
            std::unique_ptr<arena> created(new (std::nothrow) arena(static_cast<std::byte*>(start) + margin, now));
            if (created == nullptr) {
                munmap(start, now + 2 * margin);
                return fail(errc::no_memory, "no memory for the window arena");
            }
            created->announce();
            return created;
        }
        if (now / 2 < least) {
            return fail(errc::no_memory, "could not reserve " + std::to_string(now >> 20) +
                                             " MiB of addresses for windows: " + std::strerror(errno) +
                                             " (address space limit of the process? see UCX_LAYOUT_ARENA_SIZE)");
        }
    }
}

arena::~arena()
{
    munmap(_base - margin, _length + 2 * margin);
    abi::forget_memory(_base - margin, _length + 2 * margin);
}

void arena::announce() const
{
    abi::announce_rdma_memory(_base - margin, _length + 2 * margin);
}

result<void> arena::clear(std::uint64_t offset, std::size_t length) const
{
    if (length > 0 && mmap(_base + offset, length, PROT_NONE, reserved_flags | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return fail(errc::no_memory,
                    std::string("could not reserve the addresses of a window again: ") + std::strerror(errno));
    }
    return {};
}

result<void> arena::map_file(std::uint64_t offset, std::size_t length, int fd, std::uint64_t file_offset) const
{
    if (mmap(_base + offset, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             static_cast<off_t>(file_offset)) == MAP_FAILED) {
        return fail(errno == ENOMEM ? errc::no_memory : errc::invalid_param,
                    std::string("could not map the memory of a window at its address: ") + std::strerror(errno));
    }
    return {};
}

} // namespace ucxl

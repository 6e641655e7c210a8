#include "layout_memory.h"

#include "arena.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <format>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

struct source_range {
    std::int64_t low;      // lowest offset from the base address that belongs to the source
    std::uint64_t padding; // bytes before it, to bring the first described byte to a page boundary
    std::uint64_t length;  // bytes, padding included, whole pages
};

source_range range_of(const layout_bounds& bounds)
{
    const std::int64_t low  = std::min(bounds.lb, bounds.true_lb);
    const std::int64_t high = std::max(bounds.ub, bounds.true_ub);
    const auto lead         = static_cast<std::uint64_t>(bounds.true_lb - low);
    const auto padding      = round_to_pages(lead) - lead;
    return {low, padding, round_to_pages(padding + static_cast<std::uint64_t>(high - low))};
}

// Zeroed, and never of another length again.
result<int> make_file(std::uint64_t length)
{
    const int fd = memfd_create("ucx_layout", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return fail(errc::no_memory, std::format("memfd_create failed: {}", std::strerror(errno)));
    }
    if (ftruncate(fd, static_cast<off_t>(length)) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        const int reason = errno;
        close(fd);
        return fail(errc::no_memory, std::format("no file of {} bytes: {}", length, std::strerror(reason)));
    }
    return fd;
}

} // namespace

result<std::shared_ptr<const layout_memory>> layout_memory::allocate(const layout& of)
{
    std::vector<source_range> ranges(of.num_sources());
    std::uint64_t total = 0;
    for (std::uint32_t source = 0; source < of.num_sources(); ++source) {
        ranges[source] = range_of(of.bounds(source));
        total += ranges[source].length; // every length is below 2^48 and there are at most 2^16 of them: checked below
        if (total > limits::max_length) {
            return fail(
                errc::exceeds_limit,
                std::format("the memory of all sources together exceeds the limit of {} bytes", limits::max_length));
        }
    }

    std::shared_ptr<layout_memory> memory(new layout_memory);
    memory->_bases.resize(of.num_sources());
    const std::uint64_t length = std::max<std::uint64_t>(total, page_length());
    const auto file            = make_file(length);
    if (!file) {
        return std::unexpected(file.error());
    }
    memory->_fd = *file;
    void* start = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, memory->_fd, 0);
    if (start == MAP_FAILED) {
        return fail(errc::no_memory, std::format("mapping {} bytes failed: {}", length, std::strerror(errno)));
    }
    memory->_start  = static_cast<std::byte*>(start);
    memory->_length = length;

    std::uint64_t begin = 0;
    for (std::uint32_t source = 0; source < of.num_sources(); ++source) {
        memory->_bases[source] = memory->_start + begin + ranges[source].padding - ranges[source].low;
        begin += ranges[source].length;
    }
    return memory;
}

layout_memory::~layout_memory()
{
    if (_start != nullptr) {
        munmap(_start, _length);
    }
    if (_fd >= 0) {
        close(_fd);
    }
}

} // namespace ucxl

#include "check_memory.h"

#include "libc_functions.h"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <sys/mman.h>

namespace ucxl::softhca
{
namespace
{

constexpr std::uint64_t page_bytes = 4096;

// Up to this length pages are populated by one cheap call, as pinning does. For longer ranges only the permissions are
// checked: a sparse gigabyte should not be filled for a model.
constexpr std::uint64_t populated_bytes = std::uint64_t{1} << 20;

int check_mappings(std::uint64_t first, std::uint64_t end, bool writable)
{
    FILE* const maps = libc().fopen("/proc/thread-self/maps", "re");
    if (maps == nullptr) {
        return 0;
    }
    std::array<char, 512> line;
    while (first < end && std::fgets(line.data(), static_cast<int>(line.size()), maps) != nullptr) {
        std::uint64_t start = 0;
        std::uint64_t stop  = 0;
        char read           = '-';
        char write          = '-';
        if (std::sscanf(line.data(), "%" SCNx64 "-%" SCNx64 " %c%c", &start, &stop, &read, &write) != 4 ||
            stop <= first) {
            continue;
        }
        if (start > first || read != 'r' || (writable && write != 'w')) {
            break;
        }
        first = stop;
    }
    std::fclose(maps);
    return first < end ? EFAULT : 0;
}

} // namespace

int check_memory(std::uint64_t address, std::uint64_t length, bool writable)
{
    if (length == 0) {
        return 0;
    }
    if (address + length < address || address + length > UINT64_MAX - page_bytes) {
        return EINVAL;
    }
    const std::uint64_t first = address & ~(page_bytes - 1);
    const std::uint64_t end   = (address + length + page_bytes - 1) & ~(page_bytes - 1);
    if (end - first <= populated_bytes) {
        const int saved = errno;
        const int done =
            ::madvise(reinterpret_cast<void*>(first), end - first, writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
        const int error = errno;
        errno           = saved;
        if (done == 0) {
            return 0;
        }
        if (error == ENOMEM || error == EFAULT) {
            return EFAULT;
        }
        // A kernel before 5.14, or memory that cannot be populated.
    }
    return check_mappings(first, end, writable);
}

} // namespace ucxl::softhca

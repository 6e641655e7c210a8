#include "reserved_addresses.h"

#include <sys/mman.h>

namespace ucxl::reserved_addresses
{

bool take(const address_range& range) noexcept
{
    void* const start = reinterpret_cast<void*>(range.start);
    const auto length = range.end - range.start;
    void* const found =
        mmap(start, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (found == start) {
        return true;
    }
    // Kernels before 4.17 take the address for a wish.
    if (found != MAP_FAILED) {
        munmap(found, length);
    }
    return false;
}

void give_back(const address_range& range) noexcept
{
    munmap(reinterpret_cast<void*>(range.start), range.end - range.start);
}

} // namespace ucxl::reserved_addresses

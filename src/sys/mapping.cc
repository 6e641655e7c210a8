#include "mapping.h"

#include "pages.h"

#include <algorithm>

namespace ucxl
{

result<owned_mapping> owned_mapping::map_file(std::uint64_t length, int protection, int fd, std::uint64_t offset,
                                              std::uint64_t alignment)
{
    const std::uint64_t huge = huge_page_length();
    const std::uint64_t unit = std::max(alignment, length < huge ? 0 : huge);
    if (unit <= page_length()) {
        return map(length, protection, MAP_SHARED, fd, offset);
    }
    // The kernel aligns mappings only while huge pages are on for all files. So they get their place from a longer one.
    auto place = UCXL_TRY(map(length + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::byte* const place_end = place._start + round_to_pages(place._length);
    std::byte* const start     = place._start + (offset - reinterpret_cast<std::uintptr_t>(place._start)) % unit;
    std::byte* const end       = start + round_to_pages(length);
    if (mmap(start, length, protection, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) == MAP_FAILED) {
        return fail(errc::no_memory, std::format("mapping {} bytes: {}", length, std::strerror(errno)));
    }
    if (start != place._start) {
        munmap(place._start, static_cast<std::size_t>(start - place._start));
    }
    if (end != place_end) {
        munmap(end, static_cast<std::size_t>(place_end - end));
    }
    place._start = nullptr; // what is left of it is the file
    return owned_mapping(start, length);
}

} // namespace ucxl

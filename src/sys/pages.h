// Pages of memory, and huge ones: what one entry of the second-lowest page table maps, 2 MB on x86_64. A core remembers
// where some thousand pages are. Blocks far apart in small pages are more than that, and each costs a walk through the
// tables.
//
// Example:
//     auto memory = UCXL_TRY(owned_mapping::map_file(8 << 20, PROT_READ | PROT_WRITE, fd, 0));
//     const bool is_huge = fill_with_huge_pages(memory.start(), memory.length()).has_value();
#pragma once

#include "error.h"

#include <cstddef>
#include <cstdint>

namespace ucxl
{

std::size_t page_length();
// Rounds up to whole pages; length <= 2^63.
std::uint64_t round_to_pages(std::uint64_t length);

// 0 where the kernel has none.
std::uint64_t huge_page_length();

// Allocates all of the huge pages in [start, start + length), a shared mapping of a file in memory. What they contain
// stays. Other processes map the huge pages of the file, too, at addresses that are as far from a huge page as the
// offset in the file (owned_mapping::map_file()). Works from Linux 6.1 on, unless
// /sys/kernel/mm/transparent_hugepage/shmem_enabled is `deny`. Errors: no_memory (with the reason of the kernel; some
// pages may be huge then).
result<void> fill_with_huge_pages(std::byte* start, std::uint64_t length);

// Whether this process may read a byte of each page of [start, start + length); true where the kernel does not tell.
// Another thread may change that at any time.
bool is_readable(const void* start, std::size_t length);

} // namespace ucxl

// What is mapped where in a process, as the system tells it (proc_pid_maps(5), proc_pid_smaps(5)).
//
// Example: for (const mapped_range& range : mapped_ranges_of(0, {start, end}, true)) { if (range.has_flag("lo")) ... }
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace ucxl
{

struct address_range {
    std::uint64_t start;
    std::uint64_t end;
};

struct mapped_range {
    std::uint64_t start;
    std::uint64_t end;
    std::array<char, 5> access; // "rwxp"; 's' in the end: shared
    std::uint64_t file_offset;
    dev_t device; // of the file
    std::uint64_t inode;
    std::string name; // of the file, or [stack] and the like; may be empty
    // Only if they were asked for.
    std::uint64_t huge_bytes = 0; // in huge pages
    std::string flags;            // "rd wr mr"

    bool is_shared() const { return access[3] == 's'; }
    std::uint64_t file_offset_of(std::uint64_t address) const { return file_offset + (address - start); }
    bool has_flag(std::string_view two_letters) const { return flags.contains(two_letters); }
};

// By address, those that overlap the range. None if the system does not tell. pid 0: of this process. Throws
// std::bad_alloc.
std::vector<mapped_range> mapped_ranges_of(pid_t pid, const address_range& within, bool with_details);

// The shared range of this process that has all of these bytes, if there is one. Throws std::bad_alloc.
std::optional<mapped_range> shared_range_around(const void* start, std::uint64_t length);

} // namespace ucxl

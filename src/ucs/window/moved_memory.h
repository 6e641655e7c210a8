// Private memory of this process, moved into a file at the same addresses: what it holds is copied, and the file is
// mapped in its place.
//
// Whole pages are moved, so neighbours of the range on its first and last page come along. The caller sees to it that
// nobody writes to these pages meanwhile.
//
// Example: auto moved = UCXL_TRY(move_into_file(array, sizeof(array), true)); ... make_private(moved);
#pragma once

#include "sys/error.h"
#include "sys/fd.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ucxl
{

struct moved_memory {
    owned_fd file; // sealed
    std::byte* start;
    std::uint64_t length; // bytes, whole pages
    std::uint64_t offset; // of the first byte in the file
};

// Errors: invalid_param (the memory cannot be moved, with the reason), no_memory. Nothing has changed then. Throws
// std::bad_alloc.
result<moved_memory> move_into_file(std::byte* start, std::uint64_t length, bool takes_huge_pages);

// Why these whole pages cannot be moved; nothing if they can. Throws std::bad_alloc.
std::optional<std::string> why_not_moved(std::uintptr_t start, std::uintptr_t end);

// The memory stays as it is, and changes of this process are its own from now on. In pages that it does not change, it
// sees what others change in the file. Without the file (-1), which the program may have closed, the memory is copied:
// what other threads write meanwhile may be lost, and where there is no room for the copy, it stays shared.
void make_private(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset) noexcept;
// The same in a child of fork(), by a system call alone: whoever watches mmap() may have been forked while it held a
// lock.
void make_private_in_child(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset) noexcept;

} // namespace ucxl

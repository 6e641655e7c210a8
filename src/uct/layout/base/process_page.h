// Figures of this process in an unnamed file that other processes of the user can read: each kind has a name and a
// fixed number of 64-bit words, of which the first says what the others mean. A reader must take every value for
// possible.
//
// A child of fork() has none of its parent's files.
#pragma once

#include <cstdint>
#include <span>

#include <sys/types.h>

namespace ucxl
{

// Makes the page of that name, zeroed, to be mapped for the life of the process. Null if there is no memory for it.
void* make_process_page(const char* name, std::size_t length) noexcept;

enum class process_page_state : std::uint8_t {
    present, // `words` has it
    absent,  // the process has loaded the library and made no such page
    unknown, // there is no such process, it may not be inspected, or its library is another one
};

// Reads all words of the page of another process, or of this one. The first word must be `form`.
process_page_state read_process_page(pid_t pid, const char* name, std::uint64_t form, std::span<std::uint64_t> words);

} // namespace ucxl

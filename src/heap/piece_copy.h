// What a piece of the heap holds, copied for the child of a fork: before the fork, because another process must not see
// what this one writes later. The copy is private memory, or a file of its own where the process may have no more
// addresses (setrlimit(2)). What is a hole in the piece is one in the copy.
//
// Example:
//     piece_copy copy;
//     copy.make(piece.start, piece.length, piece.file, piece.file_offset);
//     // in the child, and then in both processes
//     copy.put(0, piece.length, piece.start);
//     copy.drop();
#pragma once

#include "own_file.h"

#include <cstddef>
#include <cstdint>

namespace ucxl::heap
{

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

class piece_copy
{
public:
    // Of the shared mapping at `start`, whose file the program may have closed. There may be no room for a copy.
    void make(std::byte* start, std::size_t length, const own_file& file, std::uint64_t file_offset);
    // By the child: this part of the copy instead of what is mapped there. False if there is none, or it has no room.
    bool put(std::size_t offset, std::size_t length, std::byte* at) const;
    // Releases what was not put anywhere.
    void drop();

    bool is_in_file() const { return _fd >= 0; }

private:
    bool copy_to_memory(std::byte* start, const own_file& file, std::uint64_t file_offset);
    bool copy_to_file(const own_file& file, std::uint64_t file_offset);

    std::byte* _memory  = nullptr;
    int _fd             = -1;
    std::size_t _length = 0;
};

} // namespace ucxl::heap

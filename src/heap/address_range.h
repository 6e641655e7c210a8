// The addresses of the heap, and the files behind them. The range is reserved as a whole, once, and costs no memory. It
// is mapped piece by piece, each piece to a part of a file in memory; memory is allocated when it is touched.
//
// Invariant: a piece, once mapped, stays where it is, and its file cannot become shorter. So a peer that maps it can
// touch all of it for ever. What the program gives back becomes a hole in the file, which reads as zero.
//
// One thread at a time maps more (the caller takes care of that); the rest may be called at any time.
//
// Example:
//     heap_range.reserve(limit, has_huge_pages);
//     std::byte* const memory = heap_range.take(8 << 20, 4096);
//     heap_range.punch(memory, 4096);
#pragma once

#include "forking_thread.h"
#include "own_file.h"
#include "piece_copy.h"

#include "sys/heap_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl::heap
{

class address_range
{
public:
    // Reasons why there is none, or null.
    const char* reserve(std::size_t length, bool has_huge_pages);

    bool holds(const void* address) const
    {
        const std::size_t length = _length.load(std::memory_order_acquire); // 0 until the start is set
        return reinterpret_cast<std::uintptr_t>(address) - _start.load(std::memory_order_relaxed) < length;
    }
    // Zeroed memory within one piece, or null. The length is of whole pages, the alignment a power of two.
    std::byte* take(std::size_t length, std::size_t alignment);
    // The same at this very address, if it is the next free one of a piece.
    std::byte* take_at(std::byte* address, std::size_t length);
    // Gives the pages back to the system; then they are zero. False if they are as they were.
    bool punch(std::byte* address, std::size_t length) const;
    bool are_in_one_piece(const std::byte* one, const std::byte* other) const;
    // The piece with this address, if it is shared with peers; otherwise empty.
    std::span<std::byte> shared_piece_of(const std::byte* address) const;
    // See sys/heap_memory.h
    heap_memory_kind tell(unsigned index, heap_memory& memory) const;

    // Fork: before it, a private copy of all pieces is made, which the child then moves to the place of the pieces.
    void before_fork();
    void after_fork_in_parent();
    // False if pieces are lost: then no memory of the range may be taken any more.
    bool after_fork_in_child();

private:
    enum class piece_kind : std::uint8_t {
        shared,         // with peers, by the file
        copied,         // by fork: private, and not of any file
        copied_in_file, // as `copied`, but in a file that nobody else has: what is given back there would not be zero
        lost,           // by fork: there was no room for a copy, and nothing can be read
    };
    struct piece {
        std::byte* start;
        std::size_t length;
        std::uint64_t file_offset;
        own_file file;
        piece_kind kind;
        piece_copy copy; // only during a fork
    };
    static constexpr unsigned max_pieces = 256;

    bool add_piece(std::size_t least);
    void give_back_limited_addresses();
    bool make_file();
    const piece* piece_of(const std::byte* address) const;
    void replace_by_copy(piece& replaced);
    void drop_copies();

    std::atomic<std::uintptr_t> _start{0};
    std::atomic<std::size_t> _length{0};
    bool _has_huge_pages = false;
    piece _pieces[max_pieces]{};
    std::atomic<unsigned> _num_pieces{0};
    std::byte* _next = nullptr; // free from here to the end of the last piece
    own_file _file;             // of the last pieces
    std::uint64_t _file_length = 0;
    forking_thread _thread; // only during a fork
};

extern constinit address_range heap_range;

} // namespace ucxl::heap

// What `bench pack` and `bench transfer` move: layouts, each with the loops a programmer would write by hand for it.
// std only: the peers' programs include it too, so that a case is the same everywhere by its number in the list.
#pragma once

#include "type_tree.h"

#include <functional>
#include <string>
#include <vector>

namespace ucxl::bench
{

// to, from: pack reads memory and writes packed bytes, unpack the other way round
using move_bytes = std::function<void(std::byte* to, const std::byte* from)>;

struct hand_loop {
    move_bytes pack, unpack;
    explicit operator bool() const { return pack != nullptr; }
};

// What it is measured by.
enum class family { other, blocks, nested, panel, list };

struct layout_case {
    std::string name;
    std::size_t length     = 0; // packed bytes
    std::size_t extent     = 0; // of the memory
    std::size_t touched    = 0; // of the memory, in whole cache lines
    std::size_t num_blocks = 0;
    type_ptr type;
    hand_loop hand;      // block sizes known to the compiler
    hand_loop by_memcpy; // a memcpy per block
    hand_loop tuned;     // what is possible with intrinsics or tiles; may be empty
    family judged_as  = family::other;
    std::size_t block = 0; // bytes, where all have the same length
    // Columns of doubles of a matrix with this many bytes from row to row; 0: not such a case.
    std::size_t columns = 0, rows = 0, pitch = 0;
    // Other memory of the same layout, to have it cold: `per` instances at the distance `shift`, then the next ones
    // at `far_shift`.
    std::size_t shift = 0, per = SIZE_MAX, far_shift = 0;

    std::size_t instance(std::size_t i) const { return i % per * shift + i / per * far_shift; }
};

struct two_loops;

// Blocks in two loops, described in numbers of `element` bytes.
layout_case blocks_case(std::string name, const two_loops& loops, std::size_t element);
// `count` columns of doubles, one packed after the other, of a matrix with rows of `width` of them.
layout_case columns_case(std::size_t rows, std::size_t width, std::size_t count);
// An array of {3, 3, 2 floats}, packed as three arrays.
layout_case vertices_case(std::size_t count);
// Two of four records of 48 bytes, of each 28 bytes in three fields.
layout_case records_case(std::size_t count);
// Blocks of 8 to 256 bytes with gaps of the same lengths.
layout_case list_case(std::size_t count, bool shuffled, std::size_t element);

// Made when it is needed.
struct case_maker {
    std::size_t payload; // about as many packed bytes
    std::function<layout_case()> make;
    bool always = false; // and with the whole effort, where payloads are limited, too
};

// For packing, at these sizes and the sizes that some have by themselves.
std::vector<case_maker> pack_cases();
// No layout at all.
layout_case contiguous_case(std::size_t length);
// For transfers between two processes.
std::vector<case_maker> transfer_cases();

} // namespace ucxl::bench

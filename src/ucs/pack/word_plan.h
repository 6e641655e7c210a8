// From which word of which vector each word of a vector comes, known when the library is compiled. A file words_*.inc
// for a kind of vectors has, in the namespace of its library:
//
//     word_vector, vector_words                     a vector, and how many words of 4 bytes it has
//     load_first<n>(from), store_first<n>(to, v)    its first n words, a multiple of 4
//     permuted<plan>(from)                          a vector made of words of the vectors `from`, an array
//     transpose_square<side>(to, to_stride, from, from_stride)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ucxl
{

struct word_place {
    std::uint8_t vector = 0;
    std::uint8_t word   = 0;
};

template <std::size_t words>
using word_plan = std::array<word_place, words>;

// Numbers of 8 bytes on a side of what transpose_square() transposes: number k of row i becomes number i of row k.
inline constexpr std::uint64_t square = 8;
enum class memory_side { to, from }; // the other one is packed

} // namespace ucxl

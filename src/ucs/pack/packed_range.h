// Moves a packed sub-range between contiguous bytes and the memory of a plan, between walking and kernels. Kernels see
// whole blocks only; this file moves the cut block, row or iteration at both ends of the range.
//
// Example: program_cursor at(program, offset); move_range<direction::gather>(at, bases, length, buffer);
#pragma once

#include "cursor.h"

namespace ucxl
{

enum class direction { gather, scatter };

// The contiguous bytes: a gather writes them, a scatter reads them.
template <direction way>
using packed_pointer = std::conditional_t<way == direction::gather, std::byte*, const std::byte*>;

// Where long blocks are written to; see stream.h. `passed` is for scatters, and for gathers of long blocks.
enum class caches { filled, passed };

// Moves `length` bytes, which the program must still hold, and leaves the cursor behind them.
template <direction way>
void move_range(program_cursor& cursor, base_list bases, std::uint64_t length, packed_pointer<way> packed,
                caches policy = caches::filled);

// Moves [offset, offset + length) of the program; length > 0. Needs no cursor where there is only one leaf.
template <direction way>
void move_range(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                packed_pointer<way> packed);

extern template void move_range<direction::gather>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                                   std::byte*);
extern template void move_range<direction::scatter>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                                    const std::byte*);
extern template void move_range<direction::gather>(program_cursor&, base_list, std::uint64_t, std::byte*, caches);
extern template void move_range<direction::scatter>(program_cursor&, base_list, std::uint64_t, const std::byte*,
                                                    caches);

} // namespace ucxl

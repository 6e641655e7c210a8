// Moving a packed sub-range between contiguous bytes and the memory of a plan: the part between walking and kernels.
// Kernels see whole blocks only; what is left of a block, a row or an iteration at both ends of the range is moved
// here.
//
// Example: program_cursor at(program, offset); transfer<direction::gather>(at, bases, length, buffer);
#pragma once

#include "cursor.h"

namespace ucxl
{

enum class direction { gather, scatter };

// The contiguous side: written by a gather, read by a scatter.
template <direction way>
using packed_pointer = std::conditional_t<way == direction::gather, std::byte*, const std::byte*>;

// What long blocks that are written do to the caches; see stream.h. `passed` is for scatters, and for gathers of long
// blocks.
enum class caches { filled, passed };

// Moves `length` bytes, at most those to the end of the program, and leaves the cursor behind them.
template <direction way>
void transfer(program_cursor& at, base_list bases, std::uint64_t length, packed_pointer<way> packed,
              caches are = caches::filled);

// [offset, offset + length) of the program, without a cursor where there is only one leaf; length > 0.
template <direction way>
void transfer(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
              packed_pointer<way> packed);

extern template void transfer<direction::gather>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                                 std::byte*);
extern template void transfer<direction::scatter>(const compiled_program&, base_list, std::uint64_t, std::uint64_t,
                                                  const std::byte*);
extern template void transfer<direction::gather>(program_cursor&, base_list, std::uint64_t, std::byte*, caches);
extern template void transfer<direction::scatter>(program_cursor&, base_list, std::uint64_t, const std::byte*, caches);

} // namespace ucxl

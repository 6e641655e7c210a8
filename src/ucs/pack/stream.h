// Writes large transfers past the caches. They would only push other data out, and a store that need not read its cache
// line first saves a third of the memory traffic. This pays only for memory that nobody reads soon.
//
// Long blocks are streamed directly. Short blocks are gathered through a buffer. Scattered short blocks share lines
// with bytes that stay, and are left to the caches.
#pragma once

#include "packed_range.h"

namespace ucxl
{

// Whether the program can be moved in pieces and keep what its kernels gain from seeing all of it.
bool can_gather_streaming(const compiled_program& program);
// Whether any blocks of the program go past the caches.
bool can_scatter_streaming(const compiled_program& program);
// The same for copies, which may find that several blocks are one in memory.
bool can_copy_streaming(const compiled_program& program);

// As move_range(). Other threads see the bytes as they see plain stores.
void gather_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                      std::byte* to);
void scatter_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                       const std::byte* from);

// Whether `length` bytes go past the caches that are moved from or to memory of `whole` bytes. Counts them.
inline bool passes_caches(std::uint64_t length, std::uint64_t whole)
{
    note_large_move(length);
    return whole >= streaming_limit();
}

// Call it after the last move_range() with caches::passed, and after the last use of streaming kernels.
void finish_streaming();

// The kernels to write blocks of strided memory at `to`; `ordinary` if the blocks are too short to go past the caches.
const block_kernels& kernels_past_caches(const block_kernels& ordinary, const std::byte* to, const block_run& written);
// Whether the rows of a table go past the caches.
bool has_long_blocks(const table_step& table);

} // namespace ucxl

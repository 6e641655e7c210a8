// Large transfers past the caches: what is written would only push out what is in them, and a store that need not read
// its cache line first saves a third of the memory traffic. Pays only towards memory that nobody
// reads soon; between strided memories it does not.
#pragma once

#include "program.h"

namespace ucxl
{

// From so many bytes on: measured, below it streaming loses where second level caches have 1 or 2 MB.
inline constexpr std::uint64_t min_streamed_length = std::uint64_t{8} << 20;

// Whether a program can be moved in pieces without losing what its kernels gain from seeing all of it.
bool can_gather_streaming(const compiled_program& program);

// As transfer(). Other threads see what was written as they do after plain stores.
void gather_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                      std::byte* to);

} // namespace ucxl

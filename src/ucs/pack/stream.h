// Large transfers past the caches: what is written would only push out what is in them, and a store that need not read
// its cache line first saves a third of the memory traffic. Pays only towards memory that nobody reads soon.
//
// Long blocks are streamed from where they are to where they belong. Short ones that are gathered go through a buffer;
// short ones that are scattered share lines with bytes that stay, and are left to the caches.
#pragma once

#include "transfer.h"

namespace ucxl
{

// A scatter into memory beyond streaming_limit() comes in fragments of a transport's buffers; shorter calls do not pay
// for the fence.
inline constexpr std::uint64_t min_streamed_call = 4096;

// Whether a program can be moved in pieces without losing what its kernels gain from seeing all of it.
bool can_gather_streaming(const compiled_program& program);
// Whether any of its blocks go past the caches.
bool can_scatter_streaming(const compiled_program& program);

// As transfer(). Other threads see what was written as they do after plain stores.
void gather_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                      std::byte* to);
void scatter_streaming(const compiled_program& program, base_list bases, std::uint64_t offset, std::uint64_t length,
                       const std::byte* from);

// For who calls transfer() with caches::passed, and kernels that stream: after the last of it.
void finish_streaming();

// Kernels for what is written at `to`, blocks of strided memory: `ordinary` if they are too short to go past the
// caches.
const block_kernels& kernels_past_caches(const block_kernels& ordinary, const std::byte* to, const block_run& written);
// Whether the rows of a table go past the caches.
bool has_long_blocks(const step& table);

} // namespace ucxl

// Where a memic_pool takes the addresses of its memory from. Nothing is mapped there: the CPU reaches the memory by
// copy_in() and copy_out() of the pool only.
//
// Both functions may be called while the pool makes a chunk, so neither may allocate memory of the pool. They may wait
// for those who look up and copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sys/error.h"

namespace ucxl::mlx5
{

class address_source
{
public:
    virtual ~address_source() = default;

    // Reserves so many bytes of addresses without access (PROT_NONE), from a multiple of 64 on. `length` is not rounded
    // to pages. Errors: no_memory.
    virtual result<std::byte*> reserve(std::uint64_t length) = 0;
    // Takes back what reserve() gave for the same length.
    virtual void release(std::byte* address, std::uint64_t length) noexcept = 0;
};

} // namespace ucxl::mlx5

// Moving bytes where either side may be a window: what all operations of lay_copy and lay_shm come down to.
//
// Example: if (!transfer(staging, window_address, 8192)) { the window is not there any more }
#pragma once

#include "ucs/pack/pack_plan.h"
#include "ucs/window/reader_section.h"

#include <cstddef>
#include <optional>

namespace ucxl
{

// Copies; the ranges do not overlap. False, with nothing touched and the address logged, if a side is an address of the
// window arena but not (all) in one live window. No allocation, no lock.
bool transfer(void* to, const void* from, std::size_t length);

// One side of a copy: plain memory, or packed bytes of a plan.
struct transfer_side {
    const pack_plan* plan; // null: plain memory
    base_list bases;
    std::uint64_t offset;
    std::byte* memory; // of plain memory
};

// Of this process, a window or not. None, and the address is logged, as transfer() does. The answer holds as long as
// the section.
std::optional<transfer_side> local_side(const reader_section& in, const void* address, std::size_t length,
                                        const char* operation);
void move_bytes(const transfer_side& to, const transfer_side& from, std::size_t length);

} // namespace ucxl

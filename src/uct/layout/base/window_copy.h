// Moving bytes where either side may be a window: what all operations of the transports come down to.
//
// Example: if (const auto refused = write_window(window_address, staging, 8192)) { the window is not there any more }
#pragma once

#include "failure.h"

#include "ucs/pack/pack_plan.h"
#include "ucs/window/window.h"

#include <cstddef>
#include <optional>

namespace ucxl
{

// What could not be served: the side that is not memory, and why. Nothing was touched.
struct refused_range {
    const void* address;
    std::size_t length;
    const char* reason;
};

// Copies between the window bytes at an address, all of them in one live window, and a local side, which is a window of
// this process or plain memory. The ranges do not overlap. No allocation, no lock.
[[nodiscard]] std::optional<refused_range> write_window(void* window_address, const void* source, std::size_t length);
[[nodiscard]] std::optional<refused_range> read_window(void* target, const void* window_address, std::size_t length);

// One side of a copy: plain memory, or packed bytes of a plan.
struct transfer_side {
    const pack_plan* plan; // null: plain memory
    base_list bases;
    std::uint64_t offset;
    std::byte* memory;                 // of plain memory
    window_traffic* traffic = nullptr; // of a window of this process
};

// Of this process: plain memory, or a range of one live window; none if it touches the arena and is no such range. The
// answer holds as long as the section.
std::optional<transfer_side> local_side(const reader_section& section, const void* address, std::size_t length);
void move_bytes(const transfer_side& to, const transfer_side& from, std::size_t length);

inline constexpr const char* not_in_a_window = "are not inside a live window";

} // namespace ucxl

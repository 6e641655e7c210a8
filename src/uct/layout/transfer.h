// Moving bytes where either side may be a window: what all four operations of lay_copy come down to.
//
// Example: if (!transfer(staging, window_address, 8192)) { the window is not there any more }
#pragma once

#include <cstddef>

namespace ucxl
{

// Copies; the ranges do not overlap. False, with nothing touched and the address logged, if a side is an address of the
// window arena but not (all) in one live window. No allocation, no lock.
bool transfer(void* to, const void* from, std::size_t length);

} // namespace ucxl

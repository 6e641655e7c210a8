// Lets the allocations of one thread fail, from the Nth on.
//
// Example: allocations_left = 3; f(); allocations_left = -1;  // the fourth operator new of f() throws std::bad_alloc
#pragma once

namespace ucxl::test
{

extern thread_local long allocations_left; // negative: none fails

} // namespace ucxl::test

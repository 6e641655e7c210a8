// Addresses at which nothing of this process is, and at which the system puts nothing. They cost no memory, and every
// access to them is a fault.
//
// Example: if (reserved_addresses::take({start, end})) { ...; reserved_addresses::give_back({start, end}); }
#pragma once

#include "mapped_ranges.h"

namespace ucxl::reserved_addresses
{

// Of whole pages. False if something is mapped at one of them, or if the system has no such addresses.
bool take(const address_range& range) noexcept;
// All of what was taken, or some of its pages.
void give_back(const address_range& range) noexcept;

} // namespace ucxl::reserved_addresses

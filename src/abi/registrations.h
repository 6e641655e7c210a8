// UCP's cache of registered memory.
#pragma once

#include <cstddef>

namespace ucxl::abi
{

// Tells every context that its cache may not give out registrations of [address, address + length) again: whoever holds
// one keeps it, and whoever asks next gets a new one. Any thread.
void retire_registrations(void* address, std::size_t length);

} // namespace ucxl::abi

// What memory the program has, as the kernel would find out by pinning it.
#pragma once

#include <cstdint>

namespace ucxl::softhca
{

// Whether all of that range may be read (and written): 0, EFAULT where something is not there or refuses it, EINVAL
// where the range wraps.
int check_memory(std::uint64_t address, std::uint64_t length, bool writable);

} // namespace ucxl::softhca

// Checks memory of the program as the kernel would by pinning it.
#pragma once

#include <cstdint>

namespace ucxl::softhca
{

// Whether the whole range is mapped, readable and (with `writable`) writable: 0, EFAULT, or EINVAL when the range
// wraps.
int check_memory(std::uint64_t address, std::uint64_t length, bool writable);

} // namespace ucxl::softhca

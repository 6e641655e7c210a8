// From the system calls on a device file to the methods.
#pragma once

#include <cstddef>
#include <cstdint>

#include "softhca/shim/objects/device_file.h"

namespace ucxl::softhca
{

// Both return 0 or an errno. The addresses are the program's.
int dispatch_ioctl(device_file& file, unsigned long request, std::uint64_t argument);
int dispatch_write(device_file& file, std::uint64_t bytes, std::size_t length);

} // namespace ucxl::softhca

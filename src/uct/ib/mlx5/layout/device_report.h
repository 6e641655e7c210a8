// What a device says about memory keys, and what the library makes use of: what the self-test found to work.
#pragma once

#include <string>

#include "domain.h"
#include "named_device.h"

namespace ucxl::mlx5
{

// A table with a line for each capability: its name, what the device says, what is used, and the reason where the two
// differ. Two or more spaces are between columns. Opens a domain on the device and tries to open one key to other
// functions. Errors: those of domain::open().
result<std::string> report(const named_device& device);

// What is used, in one line.
std::string choices(const domain& domain);

} // namespace ucxl::mlx5

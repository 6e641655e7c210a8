// Errors about addresses of the window arena that cannot be served. Peers choose such addresses, too, so the log has a
// limit: one that keeps using a window that is gone could otherwise fill the disk with messages.
//
// Example: report_refusal("lay_copy", address, length, "are not inside a live window");
#pragma once

#include <cstddef>

namespace ucxl
{

void report_refusal(const char* operation, const void* address, std::size_t length, const char* why);

} // namespace ucxl

// ucp_layout_print() and ucp_layout_print_device() into a string, without the last newline.
#pragma once

#include <string>
#include <sys/types.h>
#include <ucp_layout.hpp>

namespace ucxl::tools
{

std::string print_layout(const ucx_layout::layout& layout, unsigned fields);

// Null selects the first device.
std::string print_device_plan(const ucx_layout::layout& layout, const char* device);
// What the device says about memory keys, and what is used of it.
std::string print_device(const char* device);
// The changes of the library to stock UCX in this process.
std::string print_hooks();
// Who moves the bytes of the windows of a process.
std::string print_windows(pid_t pid);
// What a process shares with those of the host.
std::string print_memory(pid_t pid);

} // namespace ucxl::tools

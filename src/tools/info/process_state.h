// Describes the library in a process, as text.
#pragma once

#include <string>

#include <sys/types.h>

namespace ucxl::info
{

// The hooks of this process, which are the same in every process with this UCX and these options.
std::string hooks_as_text();
// Throws a failure if there is no such process or it has not loaded the library.
std::string failures_as_text(pid_t pid);
// Its windows, devices, shared memory and failures. Throws the same.
std::string process_as_text(pid_t pid);

} // namespace ucxl::info

// softhca-run --change: changes a device of a softhca-run that runs.
#pragma once

#include <string>

namespace ucxl::softhca::run
{

// `process`: that of softhca-run, 0 for the one around this process. Returns when the change was made, and undone if it
// has a time. Throws std::runtime_error with the reason.
void change_running_device(const std::string& change, int process);

} // namespace ucxl::softhca::run

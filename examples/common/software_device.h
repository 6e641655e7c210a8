// The mlx5 devices that a program finds, and the software device for those that find none.
#pragma once

#include <string>
#include <vector>

namespace examples
{

// mlx5 devices with an active port, by name.
std::vector<std::string> active_devices();

// Whether they are those of softhca-run: their times are those of this machine's processor.
bool is_software_device();

// The path of softhca-run: beside this program, or where the shell would find it. Empty if it is not installed.
std::string find_softhca_run();

} // namespace examples

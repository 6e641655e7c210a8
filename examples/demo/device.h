// The network card of the third selection of transports: one of this machine, or the software device if there is none.
#pragma once

#include <string>

namespace examples
{

// The first mlx5 device with an active port; empty if there is none.
std::string find_device();

// Whether this UCX can use network cards at all.
bool ucx_has_devices();

// The library reads some of its options when it is loaded. So the program starts again with those that give every
// window a hardware key, also on one host; and below softhca-run if there is no device. Returns if all is as it has to
// be, or if there is neither a device nor softhca-run. Throws if it cannot start again.
void restart_with_device(char** argv);

} // namespace examples

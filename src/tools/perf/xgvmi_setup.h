// What the processes of an xgvmi test need before they start UCX: two functions of one device, and settings by which
// the CPU of the DPU process does not touch memory of the host.
#pragma once

#include "options.h"

#include <string>
#include <utility>
#include <vector>

namespace ucxl::perf
{

using variables = std::vector<std::pair<std::string, std::string>>;

// With --self, for the owner of the memory, and for the two others. Throws if there is no such device.
variables owner_variables(const options& options);
variables dpu_variables(const options& options);

// Sets those that the user has not set.
void set_defaults(const variables& chosen);

// Of a client that was started by hand: its device is the user's choice.
void set_dpu_defaults();

} // namespace ucxl::perf

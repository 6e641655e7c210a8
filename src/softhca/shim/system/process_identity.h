// The identity of a process: its id and its start time, because process ids are reused.
#pragma once

#include <cstdint>

#include "softhca/core/fabric.h"

namespace ucxl::softhca
{

process_identity own_identity();

// Whether exactly that process runs. A zombie does not run. Where /proc cannot be read, any process of that number will
// do.
bool is_running(const process_identity& process);

} // namespace ucxl::softhca

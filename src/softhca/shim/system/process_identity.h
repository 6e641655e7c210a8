// The identity of a process: its id and its start time, because process ids are reused.
#pragma once

#include <cstdint>

#include "softhca/core/fabric.h"

namespace ucxl::softhca
{

process_identity own_identity();

// Whether exactly that process runs. A zombie does not run.
bool is_running(const process_identity& process);

} // namespace ucxl::softhca

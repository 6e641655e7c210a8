// Which process a number means: process ids come around again, so a process is its id and the time it was started.
#pragma once

#include <cstdint>

#include "softhca/core/fabric.h"

namespace ucxl::softhca
{

process_identity own_identity();

// Whether that very process runs. One that has ended and was not waited for yet does not.
bool is_running(const process_identity& process);

} // namespace ucxl::softhca

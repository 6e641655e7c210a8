// The owner of memory in the xgvmi tests: a process on the host that exports its memory to the client, the DPU process.
#pragma once

#include "oob.h"

namespace ucxl::perf
{

// Does what the client asks for, until that has no further run.
void run_owner(oob_socket& client);

} // namespace ucxl::perf

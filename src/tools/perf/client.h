// The client tells the server what to run, measures, and reports.
#pragma once

#include "oob.h"
#include "options.h"

namespace ucxl::perf
{

// owner: of the local memory, in xgvmi tests; otherwise null.
void run_client(const options& options, oob_socket& peer, oob_socket* owner);

} // namespace ucxl::perf

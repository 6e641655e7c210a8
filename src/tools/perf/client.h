// The client tells the server what to run, measures, and reports.
#pragma once

#include "oob.h"
#include "options.h"

namespace ucxl::perf
{

void run_client(const options& options, oob_socket& peer);

} // namespace ucxl::perf

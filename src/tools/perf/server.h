// The server does what the client asks for. It serves one client and ends.
#pragma once

#include "oob.h"
#include "options.h"

namespace ucxl::perf
{

// own: layouts given on this side, which replace those of the client.
void run_server(const options& own, oob_socket& peer, errand wanted);

} // namespace ucxl::perf

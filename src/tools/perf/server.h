// The server does what the client asks for: one client, then it ends.
#pragma once

#include "oob.h"
#include "options.h"

namespace ucxl::perf
{

// own: with layouts given on this side, they take the place of the client's.
void run_server(const options& own, oob_socket& peer);

} // namespace ucxl::perf

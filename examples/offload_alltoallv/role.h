// What the two kinds of processes do. Both talk to the launcher only by messages of control.h.
#pragma once

#include "control.h"
#include "exchange_plan.h"

namespace examples
{

struct role_options {
    unsigned rank   = 0; // of the host, or of the host that a DPU process works for
    unsigned rounds = 5;
    exchange_plan plan{.hosts = 4, .max_bytes = 16384, .seed = 1};
};

// A host makes buffers, exports them, waits until its DPU process has moved everything, and checks each byte. It has no
// UCP worker, so it could not take part in a transfer if it wanted to.
void play_host(const role_options& options, control& launcher);

// A DPU process imports the buffers of its host, gives remote keys of them to the other DPU processes, and moves its
// part of the messages from host to host.
void play_dpu(const role_options& options, control& launcher);

} // namespace examples

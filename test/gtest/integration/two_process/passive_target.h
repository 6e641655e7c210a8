// Remote access to a peer that does nothing: it does not even progress UCP.
#pragma once

#include "session.h"
#include "side.h"

#include <sys/types.h>

namespace ucxl::two_process
{

// Random puts and gets of one role on memory of the given kind of the other role.
void passive_target(const peer_arguments& arguments, side_kind remote);

// Waits for the other peer's message without progressing UCP.
bytes wait_passively(session& session);
// Call it once before the first passive wait; afterwards nothing is left to negotiate.
void settle(session& session);

void wait_for_death(pid_t pid);

} // namespace ucxl::two_process

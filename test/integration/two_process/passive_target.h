// Remote access to a peer that does nothing meanwhile: it does not even make progress.
#pragma once

#include "session.h"
#include "side.h"

#include <sys/types.h>

namespace ucxl::two_process
{

// Random puts and gets of the one role on memory of that kind of the other one.
void passive_target(const peer_arguments& arguments, side_kind remote);

// Waits for the other peer's message without giving UCP a chance to work.
bytes wait_passively(session& in);
// To be called once before the first passive wait: nothing is left to be agreed upon.
void settle(session& in);

void wait_for_death(pid_t pid);

} // namespace ucxl::two_process

// Scenarios by name: what a peer process does. A scenario registers where it is written, and a test starts it through
// run_pair(). Both peers run it with the same seed; their role decides which parts are theirs.
//
// Example:
//     const scenario ping("ping", [](const peer_arguments& arguments) { ... if (arguments.plays(0)) ... });
#pragma once

#include "session.h"

#include <functional>

namespace ucxl::two_process
{

using scenario_function = std::function<void(const peer_arguments&)>;

class scenario
{
public:
    scenario(const std::string& name, scenario_function function);
};

// The whole life of a peer process: `--peer ROLE SCENARIO SEED ROUNDS wakeup|polling`. Returns its exit status.
int run_peer(int argc, char** argv);

} // namespace ucxl::two_process

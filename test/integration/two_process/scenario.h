// Scenarios by name: what a peer process does. A scenario is registered where it is written, and started by a test
// through run_pair(): both peers run it with the same seed and decide by their role what is theirs to do.
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

// The command line of softhca-run. SOFTHCA_* variables give what it does not.
#pragma once

#include <string>
#include <vector>

#include "softhca/shim/settings.h"

namespace ucxl::softhca::run
{

struct command_line {
    settings chosen;
    std::vector<std::string> command;
    std::string change;  // of a running softhca-run, instead of a command
    int changed = 0;     // its process, 0 for the one around this process
    bool done   = false; // --help or --version was answered
    int status  = 0;     // the exit status: 0, or 2 after a message about a wrong command line
};

command_line parse_command_line(int argc, char** argv);

} // namespace ucxl::softhca::run

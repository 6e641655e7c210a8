// The command line of softhca-run. What is not given there comes from the SOFTHCA_* variables.
#pragma once

#include <string>
#include <vector>

#include "softhca/shim/settings.h"

namespace ucxl::softhca::run
{

struct command_line {
    settings chosen;
    std::vector<std::string> command;
    bool done  = false; // --help or --version was answered
    int status = 0;     // to end with: 0, or 2 after a message about a wrong command line
};

command_line parse_command_line(int argc, char** argv);

} // namespace ucxl::softhca::run

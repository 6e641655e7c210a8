// The command of softhca-run: starts it with the device in its environment, forwards the signals that softhca-run gets,
// and waits for it.
#pragma once

#include <string>
#include <vector>

namespace ucxl::softhca::run
{

struct variable {
    std::string name;
    std::string value;
};

// As wait() reports it.
struct ending {
    int status = 0; // exit status
    int signal = 0; // nonzero: the signal that ended it
};

// Returns when the command has ended. A command that cannot be executed ends with status 127 (not found) or 126, as in
// a shell, after a message.
ending run_command(const std::vector<std::string>& command, const std::vector<variable>& environment);

// Ends this process as the command ended.
[[noreturn]] void end_like(const ending& how);

} // namespace ucxl::softhca::run

#include "scenario.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

std::map<std::string, scenario_function>& scenarios()
{
    static std::map<std::string, scenario_function> all;
    return all;
}

// Without unwinding: operations are under way, and destroying what they use would hide the failure behind another one.
[[noreturn]] void end_with_failure()
{
    try {
        std::rethrow_exception(std::current_exception());
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "FAILED: %s\n", failure.what());
    } catch (...) {
        std::fprintf(stderr, "FAILED: unknown exception\n");
    }
    std::fflush(nullptr);
    _exit(1);
}

} // namespace

scenario::scenario(const std::string& name, scenario_function function)
{
    scenarios().emplace(name, std::move(function));
}

int run_peer(int argc, char** argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a parent that is killed leaves nobody behind
    std::set_terminate(end_with_failure);
    if (argc != 7) {
        std::fprintf(stderr, "usage: %s --peer ROLE SCENARIO SEED ROUNDS wakeup|polling\n", argv[0]);
        return 2;
    }
    const auto found = scenarios().find(argv[3]);
    if (found == scenarios().end()) {
        std::fprintf(stderr, "no scenario '%s'\n", argv[3]);
        return 2;
    }
    found->second({.role   = std::atoi(argv[2]),
                   .seed   = std::strtoull(argv[4], nullptr, 0),
                   .rounds = static_cast<unsigned>(std::strtoul(argv[5], nullptr, 0)),
                   .wakeup = std::string(argv[6]) == "wakeup"});
    return 0;
}

} // namespace ucxl::two_process

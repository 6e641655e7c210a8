#include "scenario.h"

#include "support/end_with_failure.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>

#include <signal.h>
#include <sys/prctl.h>

namespace ucxl::two_process
{

namespace
{

std::map<std::string, scenario_function>& scenarios()
{
    static std::map<std::string, scenario_function> all;
    return all;
}

} // namespace

scenario::scenario(const std::string& name, scenario_function function)
{
    scenarios().emplace(name, std::move(function));
}

int run_peer(int argc, char** argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a parent that is killed leaves nobody behind
    std::set_terminate(test::end_with_failure);
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

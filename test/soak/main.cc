// usage: soak MINUTES [--seed N]   random processes that are killed, stopped and forked, round after round
//        soak --round N            one round again
//
// It ends with "soak: N operations, N kills, N wrong, N hung, N left behind". A round that fails is told with its seed.
#include "director.h"
#include "participant.h"

#include "support/random.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <format>
#include <set>
#include <thread>

#include <CLI/CLI.hpp>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace
{

using namespace ucxl;
using namespace ucxl::soak;
using clock = std::chrono::steady_clock;

// Once: in a mount namespace of its own the process cannot find itself in /proc.
const std::string& own_program()
{
    static const std::string path = test::program_path();
    return path;
}

// Files in shared memory that these processes make, and no others, if this process may have a /dev/shm of its own.
void take_own_shared_memory()
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/dev/shm", nullptr, MS_PRIVATE, nullptr) == 0) {
        mount("soak", "/dev/shm", "tmpfs", 0, nullptr);
    }
}

std::set<std::string> shared_files()
{
    std::set<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator("/dev/shm")) {
        all.insert(each.path().filename());
    }
    return all;
}

// Files that were not there before, and stay.
std::set<std::string> left_behind(const std::set<std::string>& before)
{
    std::set<std::string> left;
    for (int tries = 0; tries < 20; ++tries) {
        left = shared_files();
        std::erase_if(left, [&](const auto& name) { return before.contains(name); });
        if (left.empty()) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return left;
}

// A round with cards runs on a software device of its own, in a process of its own.
outcome run_on_device(const round_plan& plan)
{
    test::process round(SOFTHCA_RUN, {"--order", std::format("adversarial,seed={}", plan.seed % 1'000'000), "--",
                                      own_program(), "--round", std::to_string(plan.seed), "--counts"});
    const auto ended = round.wait(std::chrono::minutes(15));
    outcome counted;
    if (std::sscanf(ended.out.c_str(), "counts %lu %u %u %u", &counted.operations, &counted.kills, &counted.wrong,
                    &counted.hung) != 4) {
        ++counted.wrong;
    }
    counted.told = counted.is_good() ? "" : ended.output();
    return counted;
}

outcome run_round(const round_plan& plan, bool is_on_device)
{
    return plan.has_cards && !is_on_device ? run_on_device(plan) : director(plan, own_program()).run();
}

int soak_for(double minutes, std::uint64_t seed, bool is_one_round)
{
    own_program();
    take_own_shared_memory();
    const auto before  = shared_files();
    const auto end     = clock::now() + std::chrono::duration<double, std::ratio<60>>(minutes);
    std::size_t rounds = 0, left = 0;
    outcome all;
    for (bool is_first = true; is_first || (!is_one_round && clock::now() < end); is_first = false, ++seed, ++rounds) {
        const round_plan plan = plan_of(seed);
        const outcome round   = run_round(plan, false);
        const auto files      = left_behind(before);
        if (!round.is_good() || !files.empty()) {
            std::printf("round %lu: %s\n%s", seed, plan.text().c_str(), round.told.c_str());
            for (const std::string& name : files) {
                std::printf("left behind: %s\n", name.c_str());
                std::filesystem::remove("/dev/shm/" + name);
            }
            std::fflush(stdout);
        }
        all.operations += round.operations;
        all.kills += round.kills;
        all.wrong += round.wrong;
        all.hung += round.hung;
        left += files.size();
    }
    std::printf("%zu rounds\n", rounds);
    std::printf("soak: %lu operations, %u kills, %u wrong, %u hung, %zu left behind\n", all.operations, all.kills,
                all.wrong, all.hung, left);
    return all.is_good() && left == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
try {
    CLI::App app("Random processes over all transports, with kills");
    double minutes      = 1;
    std::uint64_t seed  = test::run_seed();
    std::uint64_t round = 0;
    int rank            = -1;
    bool counts         = false;
    app.add_option("MINUTES", minutes, "how long")->check(CLI::PositiveNumber);
    app.add_option("--seed", seed, "of the first round (default: of the day)");
    auto* const one = app.add_option("--round", round, "only the round of this seed");
    app.add_option("--rank", rank, "be this process of the round")->group("");
    app.add_flag("--counts", counts, "print the counts of the round for the process that started it")->group("");
    CLI11_PARSE(app, argc, argv);
    if (rank >= 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // nothing stays of a soak that is killed
        const round_plan plan = plan_of(round);
        participant taking_part(plan, static_cast<unsigned>(rank), test::process::first_descriptor);
        try {
            taking_part.run();
        } catch (const std::exception& error) {
            std::fprintf(stderr, "soak: %s\n", error.what());
            std::_Exit(1); // UCX may still use what would end now
        }
        return 0;
    }
    if (counts) {
        const outcome counted = run_round(plan_of(round), true);
        std::printf("counts %lu %u %u %u\n%s", counted.operations, counted.kills, counted.wrong, counted.hung,
                    counted.told.c_str());
        return 0;
    }
    const bool is_one_round = one->count() > 0;
    return soak_for(minutes, is_one_round ? round : seed, is_one_round);
} catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
}

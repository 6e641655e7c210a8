// usage: soak MINUTES [--seed N]   random processes that are killed, stopped and forked, round after round
//        soak --round N            one round again
//        soak --plan N             what that round does
//
// It ends with "soak: N operations, N kills, N wrong, N hung, N left behind". A round that fails is told with its seed.
#include "director.h"
#include "mpi_job.h"
#include "participant.h"

#include "support/random.h"

#include <algorithm>
#include <array>
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
bool take_own_shared_memory()
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/dev/shm", nullptr, MS_PRIVATE, nullptr) == 0 &&
           mount("soak", "/dev/shm", "tmpfs", 0, nullptr) == 0;
}

// Fails where there is no /dev/shm of its own.
void limit_shared_memory(unsigned mb)
{
    const std::string size = mb == 0 ? "size=50%" : std::format("size={}m", mb);
    mount("soak", "/dev/shm", nullptr, MS_REMOUNT, size.c_str());
}

std::set<std::string> shared_files()
{
    std::set<std::string> all;
    for (const auto& each : std::filesystem::directory_iterator("/dev/shm")) {
        all.insert(each.path().filename());
    }
    return all;
}

// UCX gives its segments of shared memory a name until it has written all of them (docs/limits.md). Who is killed
// meanwhile leaves one. Open MPI's have a name as long as its job, and MPICH's while it starts. Files of the library
// have no name.
unsigned remove_segments_of(unsigned killed)
{
    unsigned removed = 0;
    for (const std::string& name : shared_files()) {
        const bool is_of_others = std::ranges::any_of(
            std::array{"ucx_shm_posix_", "sm_segment.", "osc_sm", "smcuda_", "vader_segment.", "mpich_shar_tmp"},
            [&](const char* begin) { return name.starts_with(begin); });
        if (removed < killed && is_of_others && std::filesystem::remove("/dev/shm/" + name)) {
            ++removed;
        }
    }
    return removed;
}

// Files that stay.
std::set<std::string> left_behind()
{
    std::set<std::string> left;
    for (int tries = 0; tries < 20; ++tries) {
        left = shared_files();
        if (left.empty()) {
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return left;
}

// A number in the statistics of softhca-run, which are JSON.
std::optional<std::uint64_t> number_of(const std::string& statistics, const std::string& name)
{
    const std::string begin = std::format("\"{}\": ", name);
    const std::size_t at    = statistics.rfind(begin);
    return at == std::string::npos ? std::nullopt : std::optional(std::stoull(statistics.substr(at + begin.size())));
}

// A round with cards runs on a software device of its own, in a process of its own. When all processes have ended, the
// device has no key and none of its memory is in use.
outcome run_on_device(const round_plan& plan)
{
    test::process round(SOFTHCA_RUN, {"--order", std::format("adversarial,seed={}", plan.seed % 1'000'000), "--stats",
                                      "-", "--", own_program(), "--round", std::to_string(plan.seed), "--counts"});
    const auto ended = round.wait(std::chrono::minutes(15));
    outcome counted;
    const bool is_counted = std::sscanf(ended.out.c_str(), "counts %lu %u %u %u %u %u %u %u %u", &counted.operations,
                                        &counted.left_out, &counted.kills, &counted.wrong, &counted.unconnected,
                                        &counted.hung, &counted.ended, &counted.blocked, &counted.left) == 9;
    if (ended.timed_out) {
        ++counted.hung;
    } else if (!is_counted || ended.status != 0) {
        ++counted.wrong;
        counted.told = std::format("softhca-run ended with status {}\n", ended.status);
    } else {
        for (const char* const name : {"keys_live", "memic_used"}) {
            const auto number = number_of(ended.out, name);
            if (number != 0) {
                ++counted.left;
                counted.told += number ? std::format("left behind on the device: {} {}\n", name, *number)
                                       : std::format("the statistics have no {}\n", name);
            }
        }
    }
    if (!counted.is_good() || counted.blocked > 0) {
        counted.told += ended.output();
    }
    return counted;
}

// Rarely UCX does not find an endpoint while it connects two processes over cards (docs/limits.md). The round runs once
// more then: what is wrong because of the round itself is wrong again.
outcome run_on_device_until_connected(const round_plan& plan)
{
    outcome first = run_on_device(plan);
    if (!first.is_only_unconnected()) {
        return first;
    }
    outcome again     = run_on_device(plan);
    again.reconnected = again.is_good() ? 1 : 0;
    first.wrong = first.unconnected = 0;
    again.add_counts(first);
    again.told = std::format("{}the same round once more: {}\n{}", first.told, again.is_good() ? "right" : "not right",
                             again.told);
    return again;
}

outcome run_round(const round_plan& plan, bool is_on_device)
{
    return plan.has_cards && !is_on_device ? run_on_device_until_connected(plan) : director(plan, own_program()).run();
}

struct ran_round {
    std::string plan;
    outcome counted;
    bool has_heap;
    unsigned may_leave; // segments of UCX and of MPI
};

ran_round run_round(std::uint64_t seed)
{
    if (const auto job = mpi_plan_of(seed)) {
        limit_shared_memory(0);
        const outcome counted = run(*job);
        // MPI kills all others.
        constexpr unsigned of_each = 16;
        return {job->text(), counted, job->has_heap, counted.kills * job->num_processes * of_each};
    }
    const round_plan plan = plan_of(seed);
    limit_shared_memory(plan.shared_mb);
    const outcome counted = run_round(plan, false);
    return {plan.text(), counted, plan.heaps != 0, counted.kills};
}

void print_plan(const round_plan& plan)
{
    constexpr std::array names = {"nobody is disturbed", "is killed", "is stopped", "forks"};
    std::printf("%s\n", plan.text().c_str());
    for (std::size_t number = 0; number < plan.steps.size(); ++number) {
        const step& each       = plan.steps[number];
        const char* const name = names[std::to_underlying(each.disturbed)];
        std::printf("step %zu: ", number);
        each.disturbed == disturbance::none ? std::printf("%s\n", name)
                                            : std::printf("rank %u %s after %u us\n", each.victim, name, each.delay_us);
        for (std::size_t i = 0; i < each.operations.size(); ++i) {
            std::printf("    %zu: %s\n", i, text_of(each.operations[i]).c_str());
        }
    }
}

int soak_for(double minutes, std::uint64_t seed, bool is_one_round)
{
    own_program();
    const bool has_own_shared_memory = take_own_shared_memory();
    if (!has_own_shared_memory) {
        std::printf("this process has no /dev/shm of its own: nobody looks at what is left behind there, which may "
                    "belong to others\n");
    }
    const auto end     = clock::now() + std::chrono::duration<double, std::ratio<60>>(minutes);
    std::size_t rounds = 0;
    unsigned over_heap = 0; // kills
    unsigned of_mpi    = 0; // rounds
    unsigned of_ucx    = 0; // files
    outcome all;
    for (bool is_first = true; is_first || (!is_one_round && clock::now() < end); is_first = false, ++seed, ++rounds) {
        const auto [plan, round, has_heap, may_leave] = run_round(seed);
        std::set<std::string> files;
        if (has_own_shared_memory) {
            of_ucx += remove_segments_of(may_leave);
            files = left_behind();
        }
        if (!round.is_good() || round.blocked > 0 || round.reconnected > 0 || !files.empty()) {
            std::printf("round %lu%s: %s\n%s", seed, round.blocked > 0 ? " (a queue of UCX is blocked)" : "",
                        plan.c_str(), round.told.c_str());
            for (const std::string& name : files) {
                std::printf("left behind: %s\n", name.c_str());
                std::filesystem::remove("/dev/shm/" + name);
            }
            std::fflush(stdout);
        }
        all.add_counts(round);
        all.left += static_cast<unsigned>(files.size());
        over_heap += has_heap ? round.kills : 0;
        of_mpi += mpi_plan_of(seed) ? 1 : 0;
    }
    std::printf("%zu rounds, %u of them jobs of MPI, of which %u are as wrong without the library; %u kills where "
                "processes have the heap\n",
                rounds, of_mpi, all.as_bare, over_heap);
    std::printf("%u operations were left out by processes that are short of something\n", all.left_out);
    std::printf("of UCX and MPI, most by kills: %u rounds ended early by a blocked queue, %u processes ended by "
                "UCX, %u segments left behind\n",
                all.blocked, all.ended, of_ucx);
    std::printf("%u rounds over cards in which UCX did not connect two processes, and did when they ran once more\n",
                all.reconnected);
    std::printf("soak: %lu operations, %u kills, %u wrong, %u hung, %u left behind%s\n", all.operations, all.kills,
                all.wrong, all.hung, all.left, has_own_shared_memory ? "" : " (files: not looked)");
    return all.is_good() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
try {
    CLI::App app("Random processes over all transports, with kills");
    double minutes      = 1;
    std::uint64_t seed  = test::run_seed();
    std::uint64_t round = 0;
    std::uint64_t shown = 0;
    int rank            = -1;
    bool counts         = false;
    app.add_option("MINUTES", minutes, "how long")->check(CLI::PositiveNumber);
    app.add_option("--seed", seed, "of the first round (default: of the day)");
    auto* const one  = app.add_option("--round", round, "only the round of this seed");
    auto* const plan = app.add_option("--plan", shown, "print what the round of this seed does");
    app.add_option("--rank", rank, "be this process of the round")->group("");
    app.add_flag("--counts", counts, "print the counts of the round for the process that started it")->group("");
    CLI11_PARSE(app, argc, argv);
    if (plan->count() > 0) {
        if (const auto job = mpi_plan_of(shown)) {
            std::printf("%s\n", job->text().c_str());
        } else {
            print_plan(plan_of(shown));
        }
        return 0;
    }
    if (rank >= 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // nothing stays of a soak that is killed
        const round_plan drawn = plan_of(round);
        participant taking_part(drawn, static_cast<unsigned>(rank), test::process::first_descriptor);
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
        std::printf("counts %lu %u %u %u %u %u %u %u %u\n%s", counted.operations, counted.left_out, counted.kills,
                    counted.wrong, counted.unconnected, counted.hung, counted.ended, counted.blocked, counted.left,
                    counted.told.c_str());
        test::context({.features = UCP_FEATURE_RMA}); // who opens the device ends what killed processes have there
        return 0;
    }
    const bool is_one_round = one->count() > 0;
    return soak_for(minutes, is_one_round ? round : seed, is_one_round);
} catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
}

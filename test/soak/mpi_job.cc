#include "mpi_job.h"

#include "ucx_ends.h"

#include "support/random.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

namespace ucxl::soak
{

namespace
{

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::uint64_t rounds_for_each = 10; // one of so many is a job of MPI
constexpr auto patience                 = 120s;
constexpr auto time_to_start            = 30s;
constexpr auto time_to_vanish           = 10s; // of processes, after their job has ended
constexpr const char* program           = "mpi_datatype_calls_";

#ifdef HAVE_OPENMPI
constexpr bool has_openmpi = true;
#else
constexpr bool has_openmpi = false;
#endif
#ifdef HAVE_MPICH
constexpr bool has_mpich = true;
#else
constexpr bool has_mpich = false;
#endif

const char* name_of_mpi(const mpi_plan& plan)
{
    return plan.is_mpich ? "mpich" : "openmpi";
}

std::vector<std::string> arguments_of(const mpi_plan& plan)
{
    const std::string number = std::to_string(plan.num_processes);
    std::vector<std::string> all{"mpiexec.mpich", "-n", number};
    if (!plan.is_mpich) {
        all = {"mpirun.openmpi", "--allow-run-as-root", "--bind-to", "none", "--oversubscribe", "-n", number};
        for (const char* const name : {"pml", "osc"}) {
            all.insert(all.end(), {"--mca", name, "ucx"});
        }
        for (const char* const name : {"pml_ucx_tls", "pml_ucx_devices"}) {
            all.insert(all.end(), {"--mca", name, "any"});
        }
    }
    all.insert(all.end(),
               {std::string(MPI_FOLDER) + "/" + program + name_of_mpi(plan), std::to_string(plan.seed), "1"});
    return all;
}

test::environment variables_of(const mpi_plan& plan, bool has_library)
{
    test::environment all = plan.options;
    if (has_library) {
        all.emplace_back("LD_PRELOAD", std::format("{}/.libs/libmpi_layout_{}.so{}{}", MPI_FOLDER, name_of_mpi(plan),
                                                   plan.has_heap ? ":" : "", plan.has_heap ? HEAP_LIBRARY : ""));
        all.emplace_back("LD_LIBRARY_PATH", MPI_FOLDER "/.libs");
    }
    // Processes that wait leave the cores to those that they wait for.
    all.emplace_back("OMPI_MCA_mpi_yield_when_idle", "1");
    all.emplace_back("MPIR_CVAR_ENABLE_HEAVY_YIELD", "1");
    return all;
}

struct seen_process {
    std::string name;
    char state   = 0;
    pid_t parent = 0;
};

std::optional<seen_process> look_at(pid_t process)
{
    std::ifstream file(std::format("/proc/{}/stat", process));
    std::string line;
    std::getline(file, line);
    const std::size_t open = line.find('('), close = line.rfind(')');
    seen_process seen;
    if (open == line.npos || close == line.npos ||
        std::sscanf(line.c_str() + close + 1, " %c %d", &seen.state, &seen.parent) != 2) {
        return std::nullopt;
    }
    seen.name = line.substr(open + 1, close - open - 1);
    return seen;
}

// The running programs among the descendants of the launcher.
std::vector<pid_t> ranks_below(pid_t launcher)
{
    std::map<pid_t, seen_process> all;
    for (const auto& each : std::filesystem::directory_iterator("/proc")) {
        const std::string name = each.path().filename();
        pid_t process          = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc{}) {
            continue;
        }
        if (auto seen = look_at(process)) {
            all.emplace(process, std::move(*seen));
        }
    }
    std::vector<pid_t> ranks;
    for (const auto& [process, seen] : all) {
        // The kernel keeps 15 letters of a name.
        if (!std::string(program).starts_with(seen.name) || seen.name.size() < 15) {
            continue;
        }
        auto above = all.find(seen.parent);
        while (above != all.end() && above->first != launcher) {
            above = all.find(above->second.parent);
        }
        if (above != all.end()) {
            ranks.push_back(process);
        }
    }
    return ranks;
}

// All of them, or fewer if the job ends before.
std::vector<pid_t> await_ranks(test::process& job, unsigned number)
{
    const auto deadline = clock::now() + time_to_start;
    std::vector<pid_t> ranks;
    do {
        std::this_thread::sleep_for(5ms);
        ranks = ranks_below(job.pid());
    } while (ranks.size() < number && !job.has_ended() && clock::now() < deadline);
    return ranks;
}

bool is_running(pid_t process)
{
    const auto seen = look_at(process);
    return seen && seen->state != 'Z' && std::string(program).starts_with(seen->name);
}

// Those that do not end with their job; they are killed.
std::vector<pid_t> left_of(std::vector<pid_t> ranks)
{
    const auto deadline = clock::now() + time_to_vanish;
    while (std::erase_if(ranks, [](pid_t each) { return !is_running(each); }), !ranks.empty()) {
        if (clock::now() > deadline) {
            std::ranges::for_each(ranks, [](pid_t each) { kill(each, SIGKILL); });
            return ranks;
        }
        std::this_thread::sleep_for(5ms);
    }
    return {};
}

// What the processes of a job have said by its end.
struct verdict {
    std::multiset<std::string> wrong{}; // lines, some of each process
    std::uint64_t num_compared = 0, num_wrong = 0;
    bool is_complete = false; // the last line came

    bool is_right() const { return is_complete && num_wrong == 0 && wrong.empty(); }
};

verdict verdict_of(const std::string& output)
{
    const std::regex of_rank("rank [0-9]+: .*: .*"), last("([0-9]+) comparisons, ([0-9]+) wrong");
    verdict said;
    std::istringstream lines(output);
    std::smatch parts;
    for (std::string line; std::getline(lines, line);) {
        if (std::regex_match(line, of_rank)) {
            said.wrong.insert(line);
        } else if (std::regex_match(line, parts, last)) {
            said.num_compared = std::stoull(parts[1]);
            said.num_wrong    = std::stoull(parts[2]);
            said.is_complete  = true;
        }
    }
    return said;
}

// Whether a process was ended by a signal that nobody sent. UCX tells of those that it handles ("Caught signal 11"),
// and the launchers of all ("exited on signal 11", "Segmentation fault (signal 11)"). They end other processes by
// SIGTERM and SIGKILL.
bool has_crashed(const std::string& output, bool had_kill)
{
    const bool is_of_copy = had_kill && was_ended_by_copy(output);
    const std::regex signals("signal ([0-9]+)");
    return std::any_of(std::sregex_iterator(output.begin(), output.end(), signals), std::sregex_iterator(),
                       [&](const std::smatch& each) {
                           const int number = std::stoi(each[1]);
                           return number != SIGKILL && number != SIGTERM && !(number == SIGABRT && is_of_copy);
                       });
}

// MPI has defects of its own: Open MPI 5.0.7 does not receive some datatypes right, some of them only now and then.
// They excuse a job if all that it says is wrong is wrong without the library, too, in one run or another, and such
// runs end alike. Of one with a kill only the lines can be compared.
bool is_as_wrong_without_library(const mpi_plan& plan, const verdict& said, int status, bool had_kill)
{
    constexpr unsigned most_runs = 40; // a line was seen that is wrong in one run of nine
    if (said.wrong.empty() || (!had_kill && (!said.is_complete || said.num_wrong != said.wrong.size()))) {
        return false;
    }
    std::multiset<std::string> wrong_without;
    for (unsigned runs = 0; runs < most_runs; ++runs) {
        test::process job("/usr/bin/env", arguments_of(plan), {.variables = variables_of(plan, false)});
        const auto ended   = job.wait(patience);
        const verdict bare = verdict_of(ended.output());
        if (had_kill || (status == ended.status && bare.is_complete && said.num_compared == bare.num_compared)) {
            std::multiset<std::string> both;
            std::ranges::set_union(wrong_without, bare.wrong, std::inserter(both, both.end()));
            wrong_without = std::move(both);
        }
        if (std::ranges::includes(wrong_without, said.wrong)) {
            return true;
        }
    }
    return false;
}

} // namespace

std::string mpi_plan::text() const
{
    std::string line =
        std::format("MPI {}, {} processes{}", name_of_mpi(*this), num_processes, has_heap ? " with the heap" : "");
    for (const auto& [name, value] : options) {
        line += std::format(", {}={}", name, value);
    }
    return killed ? line + std::format(", process {} is killed after {} ms", killed->victim, killed->delay_ms) : line;
}

std::optional<mpi_plan> mpi_plan_of(std::uint64_t seed)
{
    if (seed % rounds_for_each != 0 || (!has_openmpi && !has_mpich)) {
        return std::nullopt;
    }
    test::random from(seed);
    mpi_plan drawn{.seed = seed};
    drawn.is_mpich      = has_mpich && (!has_openmpi || from.one_in(2));
    drawn.num_processes = from.one_in(2) ? 2 : 4; // the program wants an even number
    drawn.has_heap      = from.one_in(2);
    const auto maybe    = [&](std::uint64_t number, const char* name, const char* value) {
        if (from.one_in(number)) {
            drawn.options.emplace_back(name, value);
        }
    };
    maybe(3, "UCX_LAYOUT_MPI_ENGINE", "windows");
    // MPI_Isendrecv_replace of MPICH 4.2.1 reads beyond the elements. Where the library takes them it does not happen.
    maybe(drawn.is_mpich ? 1 : 2, "UCX_LAYOUT_MPI_TYPES", "all");
    maybe(4, "UCX_LAYOUT_MPI_STATIC_ARRAYS", "y");
    maybe(2, "UCX_RNDV_THRESH", from.one_in(2) ? "1k" : "inf");
    constexpr std::array transports = {"all", "posix,self", "posix,cma,self", "sysv,self", "tcp,self"};
    maybe(2, "UCX_TLS", transports[from.below(transports.size())]);
    if (from.one_in(2)) {
        drawn.killed = {.victim   = static_cast<unsigned>(from.below(drawn.num_processes)),
                        .delay_ms = static_cast<unsigned>(from.below(600))};
    }
    return drawn;
}

outcome run(const mpi_plan& plan)
{
    outcome counted;
    test::process job("/usr/bin/env", arguments_of(plan), {.variables = variables_of(plan, true)});
    const auto ranks = await_ranks(job, plan.num_processes);
    if (plan.killed && ranks.size() == plan.num_processes) {
        std::this_thread::sleep_for(std::chrono::milliseconds(plan.killed->delay_ms));
        const pid_t victim = ranks[plan.killed->victim];
        if (is_running(victim) && kill(victim, SIGKILL) == 0) {
            ++counted.kills;
        }
    }
    const auto ended         = job.wait(patience);
    const std::string output = ended.output();
    const auto left          = left_of(ranks);
    const verdict said       = verdict_of(output);
    const bool had_kill      = counted.kills > 0;
    const bool crashed       = !ended.timed_out && has_crashed(output, had_kill);
    const bool is_right      = ended.status == 0 && said.is_right();
    const bool is_wrong      = !said.wrong.empty() || said.num_wrong > 0;
    counted.hung             = ended.timed_out ? 1 : static_cast<unsigned>(left.size());
    counted.wrong            = is_wrong || crashed || (!ended.timed_out && !had_kill && !is_right) ? 1 : 0;
    if (counted.wrong != 0 && !crashed && !ended.timed_out &&
        is_as_wrong_without_library(plan, said, ended.status, had_kill)) {
        counted.wrong   = 0;
        counted.as_bare = 1;
    }
    if (is_right) {
        counted.operations = said.num_compared;
    }
    if (!counted.is_good()) {
        counted.told =
            std::format("{}{} processes stay after their job, status {}\n", output, left.size(), ended.status);
    }
    return counted;
}

} // namespace ucxl::soak

#include "transfer_pairs.h"

#include "sides.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace ucxl::bench
{

namespace
{

struct launcher {
    const char* name;
    const char* library;
    std::vector<std::string> command;
};

const launcher launchers[] = {
    // Shared memory is what it chooses by itself. Where it may look at TCP, too, it complains about networks.
    {"openmpi",
     "openmpi",
     {"mpirun.openmpi", "-n", "2", "--bind-to", "none", "--oversubscribe", "--mca", "btl", "self,sm"}},
    {"openmpi-ucx",
     "openmpi",
     {"mpirun.openmpi", "-n", "2", "--bind-to", "none", "--oversubscribe", "--mca", "pml", "ucx", "--mca",
      "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"}},
    {"mpich", "mpich", {"mpiexec.mpich", "-n", "2"}},
};

} // namespace

pair start_program(scratch_folder& folder, const std::string& memory, const std::string& name,
                   const std::string& program, const std::vector<std::string>& more,
                   const std::vector<std::string>& settings)
{
    std::vector<std::string> command{"env"};
    command.insert(command.end(), settings.begin(), settings.end());
    command.insert(command.end(), {BENCH_FOLDER "/" + program, folder.add_fifo(name), memory});
    command.insert(command.end(), more.begin(), more.end());
    return {name, std::make_unique<worker>(command)};
}

pair start_side(scratch_folder& folder, const std::string& memory, const std::string& name, const std::string& kind,
                const std::vector<std::string>& settings)
{
    return start_program(folder, memory, name, "bench_transfer_side", {kind}, settings);
}

contender run_by(const std::string& name, pair& by, const std::string& method)
{
    return {name, [&by, method](unsigned times) { return by.process->ask(fmt::format("run {} {}", method, times)); }};
}

double measure_round_trip(pair& by)
{
    constexpr unsigned trips = 1000;
    return by.process->ask(fmt::format("trip {}", trips));
}

// The median of some, each with memory of its own.
first_use measure_first_use(pair& by)
{
    constexpr std::size_t length = std::size_t{64} << 20;
    constexpr std::size_t tries  = 5;
    std::vector<double> first, again;
    for (std::size_t i = 0; i < tries; ++i) {
        first.push_back(by.process->ask(fmt::format("first {}", length)));
        again.push_back(by.process->ask("again"));
    }
    std::ranges::sort(first);
    std::ranges::sort(again);
    return {length, first[tries / 2], again[tries / 2]};
}

void tell_data(pair& by, data_kind data, unsigned buffers)
{
    by.process->ask(data == data_kind::live ? "data live" : "data same");
    by.process->ask(fmt::format("buffers {}", buffers));
}

pair start_limit(scratch_folder& folder, const std::string& memory)
{
    return start_side(folder, memory, "limit", "limit", {});
}

void expect_pinned(all_pairs& pairs, const std::optional<cpu_pair>& cpus)
{
    pairs.for_each([&](pair& by) {
        if (cpus && by.process->ask("cpus") != cpus->first + cpu_factor * cpus->second) {
            throw std::runtime_error("the processes of " + by.name + " are not where they were pinned to");
        }
    });
}

all_pairs start_all(scratch_folder& folder, const std::string& memory)
{
    // All but one with what is set for this program.
    all_pairs made{.window = start_side(folder, memory, "window", "window", {}),
                   .mapped = start_side(folder, memory, "mapped", "mapped", {}),
                   .posix  = start_side(folder, memory, "posix", "window", {"UCX_TLS=posix,lay_copy"}),
                   .stock  = start_side(folder, memory, "ucp", "iov", {}),
                   .limit  = start_limit(folder, memory),
                   .peers  = {}};
    for (const launcher& by : launchers) {
        const std::string program = std::string(BENCH_FOLDER "/bench_mpi_transfer_") + by.library;
        if (access(program.c_str(), X_OK) != 0) {
            fmt::print(stderr, "bench transfer: without {}: there is no {}\n", by.name, program);
            continue;
        }
        std::vector<std::string> command = by.command;
        command.insert(command.end(), {program, folder.add_fifo(by.name), memory});
        made.peers.push_back({by.name, std::make_unique<worker>(command)});
    }
    return made;
}

} // namespace ucxl::bench

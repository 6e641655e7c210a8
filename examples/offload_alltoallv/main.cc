// offload_alltoallv: every host sends to every host, and none of them takes part. Each host has a process on its DPU
// (the other function of its card). It exports temporary buffers and is stopped; the DPU processes move everything.
#include "examples/common/software_device.h"
#include "launcher.h"
#include "report.h"
#include "with_software_device.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>

using namespace examples;

namespace
{

constexpr const char* program = "offload_alltoallv";

struct command_line {
    launcher_options launcher;
    std::string dpu_command;
    std::string as; // of a process that the launcher started
    std::string result_path;
    unsigned limit_s = 300;
};

void require_device(const std::string& name, const char* option)
{
    const std::vector<std::string> found = active_devices();
    if (std::ranges::find(found, name) == found.end()) {
        throw std::runtime_error(
            fmt::format("{}: there is no device {} with an active port here (there is: {}); the "
                        "software device has two: softhca-run --functions 2 -- {}",
                        option, name, found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", ")), program));
    }
}

int play(const command_line& wanted)
{
    control launcher = control::of_this_process();
    try {
        (wanted.as == "host" ? play_host : play_dpu)(wanted.launcher.roles, launcher);
        return 0;
    } catch (const control::end_of_messages&) { // the launcher says why, unless it was killed
    } catch (const std::exception& failure) {
        launcher.send(word::failed, failure.what());
    }
    return 1;
}

int launch(const command_line& wanted, char** argv)
{
    const launcher_options& options = wanted.launcher;
    if (active_devices().empty() && !find_softhca_run().empty()) {
        return run_on_software_device(argv);
    }
    require_device(options.host_device, "--host-device");
    if (options.dpu_command.empty()) {
        require_device(options.dpu_device, "--dpu-device");
    }
    print_head(options);
    const exchange_result result = run_exchange(options);
    print_summary(options, result);
    print_or_write(as_json(options, result), wanted.result_path);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    command_line wanted;
    launcher_options& options = wanted.launcher;
    CLI::App app("Every host sends to every host, moved by their DPU processes while the hosts are stopped.", program);
    app.add_option("-n,--hosts", options.roles.plan.hosts, "hosts, and as many DPU processes")
        ->check(CLI::Range(1, 32))
        ->capture_default_str();
    app.add_option("--rounds", options.roles.rounds, "exchanges, each with new buffers")
        ->check(CLI::Range(1, 1000000))
        ->capture_default_str();
    app.add_option("--size", options.roles.plan.max_bytes, "longest message, in bytes; lengths differ")
        ->check(CLI::Range(std::size_t{exchange_plan::unit_bytes}, std::size_t{1} << 32))
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str();
    app.add_option("--seed", options.roles.plan.seed, "chooses lengths, layouts and bytes")->capture_default_str();
    app.add_option("--host-device", options.host_device, "network device of the hosts")->capture_default_str();
    app.add_option("--dpu-device", options.dpu_device,
                   "network device of the DPU processes: another function of the same card")
        ->capture_default_str();
    app.add_option("--dpu-command", wanted.dpu_command,
                   "starts a DPU process: this program there, by ssh or in an emulator");
    app.add_option("--time-limit", wanted.limit_s, "seconds until it is given up")->capture_default_str();
    app.add_option("--as", wanted.as)->group("")->check(CLI::IsMember({"host", "dpu"}));
    app.add_option("--rank", options.roles.rank)->group("");
    app.add_option("--result-to", wanted.result_path)->group("");
    CLI11_PARSE(app, argc, argv);
    options.dpu_command = CLI::detail::split_up(wanted.dpu_command);
    options.limit       = std::chrono::seconds(wanted.limit_s);
    try {
        return wanted.as.empty() ? launch(wanted, argv) : play(wanted);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}: {}\n", program, failure.what());
        return 1;
    }
}

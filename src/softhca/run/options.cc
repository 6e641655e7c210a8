#include "options.h"

#include "config.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>

namespace ucxl::softhca::run
{
namespace
{

constexpr const char* examples = R"(
examples:
  softhca-run -- ibv_devinfo -v
  softhca-run -- bash -c 'ib_write_bw & sleep 1; ib_write_bw localhost'
  softhca-run --functions 2 --stats - -- ./program            two functions (VHCAs), and statistics
  softhca-run --fault wqe:rdma_write,first=10 -- ./program    the tenth write fails
  softhca-run --change port_down:mlx5_0,time=2s --of 4711     the port of a running one goes down for a while
Every option is also a variable: SOFTHCA_DEVICES and so on; see softhca-run(1).)";

std::string join(const std::vector<std::string>& faults)
{
    std::string all;
    for (const std::string& each : faults) {
        all += (all.empty() ? "" : ";") + each;
    }
    return all;
}

void add_options(CLI::App& app, command_line& line, std::vector<std::string>& faults)
{
    settings& chosen = line.chosen;
    app.usage("usage: softhca-run [OPTIONS] -- COMMAND [ARGUMENTS]\n       softhca-run --change CHANGE [--of PID]");
    app.footer(examples);
    app.add_option("--devices", chosen.devices, "number of devices (default 1)")->type_name("N");
    app.add_option("--functions", chosen.functions, "number of functions of each device (default 1)")->type_name("N");
    app.add_option("--profile", chosen.profile,
                   "have the capabilities of a card: none, cx5, cx6dx, cx7, bf3, vf; cx6dx,imaicl=0 changes one")
        ->type_name("NAME");
    app.add_option("--times", chosen.times, "add the modelled time of operations on a card: none, cx6, bf3")
        ->type_name("NAME");
    app.add_option("--order", chosen.order,
                   "order of execution: posted, or adversarial[,seed=N]: every order and delay that is allowed")
        ->type_name("ORDER");
    app.add_option("--netdev", chosen.netdev, "the network interface that belongs to the port of mlx5_0 (default none)")
        ->type_name("NAME");
    app.add_option("--fault", faults, "make something fail; may be given several times")->type_name("SPEC");
    app.add_option("--trace", chosen.trace, "write every command, WQE and CQE to FILE (-: standard error)")
        ->type_name("FILE");
    app.add_option("--stats", chosen.stats, "write statistics to FILE as JSON (-: standard output)")->type_name("FILE");
    app.add_option("--change", line.change, "change a device of the softhca-run around, or of --of; no command")
        ->type_name("CHANGE");
    app.add_option("--of", line.changed, "the process of the softhca-run whose device is changed")
        ->type_name("PID")
        ->check(CLI::PositiveNumber)
        ->needs("--change");
    app.set_version_flag("-V,--version", std::string("softhca-run ") + PACKAGE_VERSION, "print the version");
}

} // namespace

command_line parse_command_line(int argc, char** argv)
{
    command_line line{.chosen = settings_of_environment(), .command = {}, .change = {}};
    char** const end  = argv + argc;
    char** const dash = std::find(argv, end, std::string_view("--"));
    std::vector<std::string> faults;
    CLI::App app("Runs a command with a software mlx5 device.", "softhca-run");
    add_options(app, line, faults);
    try {
        app.parse(static_cast<int>(dash - argv), argv);
    } catch (const CLI::Success& shown) {
        line.done   = true;
        line.status = app.exit(shown);
        return line;
    } catch (const CLI::Error& error) {
        const char* const hint = dash == end ? "; the command goes behind --" : "";
        fmt::print(stderr, "softhca-run: {}{}\ntry softhca-run --help\n", error.what(), hint);
        line.done   = true;
        line.status = 2;
        return line;
    }
    if (!faults.empty()) {
        line.chosen.faults = join(faults);
    }
    if (dash != end) {
        line.command.assign(dash + 1, end);
    }
    if (line.change.empty() == line.command.empty()) {
        fmt::print(stderr, "softhca-run: {}: softhca-run [OPTIONS] -- COMMAND [ARGUMENTS]\n",
                   line.command.empty() ? "a command is missing" : "--change goes without a command");
        line.done   = true;
        line.status = 2;
    }
    return line;
}

} // namespace ucxl::softhca::run

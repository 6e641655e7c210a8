// `contrib/dev bench device`: what windows with hardware keys cost: work requests, bytes that CPUs copy and commands,
// for all exchanges of the demo. Runs itself under softhca-run. Counts are those of any mlx5 device; times would be
// those of the software device.
#include "bench/common/comparison.h"
#include "bench/common/worker.h"
#include "device_counts.h"
#include "device_patterns.h"
#include "device_row.h"
#include "support/software_device.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

constexpr unsigned counted_transfers = 4;

struct options {
    std::vector<std::string> only;
    bool with_summary       = false;
    bool has_own_thresholds = false;
    std::string csv, plot;
};

struct operation {
    const char* name;
    std::vector<std::string> methods; // the first one is that of windows
};

const operation operations[] = {{"message", {"window-message", "list-message", "packed-message"}},
                                {"put", {"window-put", "block-puts"}}};

std::unique_ptr<worker> start(const char* kind, std::vector<std::string> settings)
{
    std::vector<std::string> command{"env"};
    // UCX copies by functions of libc, which copy_counter.h counts.
    settings.insert(settings.end(), {"UCX_BUILTIN_MEMCPY_MIN=inf", "UCX_NT_BUFFER_TRANSFER_MIN=inf"});
    command.insert(command.end(), settings.begin(), settings.end());
    command.insert(command.end(), {BENCH_FOLDER "/bench_device_side", kind});
    return std::make_unique<worker>(command);
}

// UCX lets the CPU copy short messages, also contiguous ones, unless it is told not to.
std::vector<std::string> settings_of_windows(const options& wanted)
{
    std::vector<std::string> settings{"UCX_TLS=rc_x,lay_copy", "UCX_LAYOUT_KEYS_SAME_HOST=always",
                                      "UCX_LAYOUT_KEYS_WINDOWS=keys"};
    if (!wanted.has_own_thresholds) {
        settings.insert(settings.end(), {"UCX_RNDV_THRESH=0", "UCX_RNDV_SCHEME=get_zcopy"});
    }
    return settings;
}

class benchmark
{
public:
    explicit benchmark(const options& wanted)
        : _wanted(wanted), _windows(start("windows", settings_of_windows(wanted))),
          _stock(start("stock", {"UCX_TLS=rc_x", "UCX_LAYOUT_KEYS_ENABLE=n", "UCX_LAYOUT_HOOKS="})),
          _automatic(start("auto", {"UCX_TLS=rc_x,lay_copy", "UCX_LAYOUT_KEYS_WINDOWS=auto"}))
    {
    }

    device_rows measure()
    {
        const examples::pattern_list patterns = device_patterns();
        for (unsigned i = 0; i < patterns.size(); ++i) {
            if (is_wanted(patterns[i].name)) {
                add_rows(i, patterns[i]);
            }
        }
        return std::move(_rows);
    }

private:
    bool is_wanted(const std::string& name) const
    {
        return _wanted.only.empty() ||
               std::ranges::any_of(_wanted.only, [&](const std::string& text) { return name.contains(text); });
    }

    worker& process_of(const std::string& method) { return method.starts_with("window") ? *_windows : *_stock; }

    void add_rows(unsigned number, const examples::pattern& moved)
    {
        const std::string prepare = fmt::format("case {}", number);
        const double length       = _windows->ask(prepare);
        if (length < 0 || _stock->ask(prepare) != length) {
            throw std::runtime_error(moved.name + ": wrong bytes arrived");
        }
        device_row row{.pattern          = moved.name,
                       .operation        = {},
                       .length           = static_cast<std::size_t>(length),
                       .num_blocks       = moved.send.blocks().size(),
                       .has_keys_by_cost = _automatic->ask(fmt::format("keys {}", number)) != 0,
                       .methods          = {}};
        for (const operation& each : operations) {
            row.operation = each.name;
            row.methods   = costs_of(each);
            _rows.push_back(row);
        }
        fmt::print(stderr, "{}\n", moved.name);
    }

    std::vector<device_cost> costs_of(const operation& each)
    {
        std::vector<device_cost> costs;
        for (const std::string& method : each.methods) {
            costs.push_back(cost_of(method));
        }
        return costs;
    }

    void run(const std::string& method, unsigned times)
    {
        process_of(method).ask(fmt::format("run {} {}", method, times));
    }

    // In the steady state: UCX has registered everything.
    device_cost cost_of(const std::string& method)
    {
        run(method, 2);
        const counts before = _device.now();
        run(method, counted_transfers);
        const counts found = _device.now() - before;
        const auto each    = [](std::uint64_t count) { return static_cast<double>(count) / counted_transfers; };
        return {.method        = method,
                .work_requests = each(found.work_requests),
                .key_bindings  = each(found.key_bindings),
                .commands      = each(found.commands),
                .bytes_copied  = process_of(method).ask("copied " + method)};
    }

    const options& _wanted;
    device_counts _device;
    std::unique_ptr<worker> _windows, _stock, _automatic;
    device_rows _rows;
};

void write(const std::string& text, const std::string& file)
{
    std::ofstream out(file);
    out.exceptions(std::ios::failbit | std::ios::badbit);
    out << text;
}

void plot(const device_rows& rows, const std::string& prefix)
{
    write(device_csv(rows), prefix + ".csv");
    const std::string command = fmt::format("python3 '{}' '{}.csv' '{}.png'", PLOT_DEVICE_SCRIPT, prefix, prefix);
    if (std::system(command.c_str()) != 0) {
        throw std::runtime_error("this failed: " + command);
    }
}

void run(const options& wanted)
{
    benchmark made(wanted);
    const device_rows rows = made.measure();
    fmt::print(
        "one transfer, both processes together. WQEs: work requests; copied: how often CPUs copied each byte of the "
        "application\n(of blocks at least: what UCX stores into work requests is not counted); commands, UMR: of "
        "windows, in the steady\nstate; auto: what windows get without options. Windows:\n{}\n\n",
        fmt::join(settings_of_windows(wanted), " "));
    fmt::print("{}\n{}", device_table(rows, "message"), device_table(rows, "put"));
    if (!wanted.csv.empty()) {
        write(device_csv(rows), wanted.csv);
    }
    if (!wanted.plot.empty()) {
        plot(rows, wanted.plot);
    }
    if (wanted.with_summary) {
        fmt::print("\n{}{}\n", judge(rows), device_summary(rows));
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    CLI::App app("Work requests, copied bytes and commands of windows with hardware keys and of stock UCX.",
                 "bench_device");
    options wanted;
    app.add_option("--only", wanted.only, "patterns whose name holds this text; may be given several times")
        ->allow_extra_args(false);
    app.add_flag("--summary", wanted.with_summary, "after the tables: goals, and how many transfers no CPU copied");
    app.add_flag("--own-thresholds", wanted.has_own_thresholds,
                 "let UCX choose protocols for windows, too: the CPU then copies short messages");
    app.add_option("--csv", wanted.csv, "write all figures into this file");
    app.add_option("--plot", wanted.plot, "draw them into a file whose name begins like this");
    CLI11_PARSE(app, argc, argv);
    return report_failure("device", [&] {
        if (!has_software_device()) {
            setenv("UCX_LOG_FILE", "stderr", 0); // standard output of the processes carries answers
            ucxl::test::run_below(SOFTHCA_RUN, {"--times", "none"}, argv);
        }
        run(wanted);
    });
}

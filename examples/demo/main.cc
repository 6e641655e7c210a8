// ucx_layout_demo: two processes exchange the non-contiguous data of real applications over stock UCX, through windows
// and, for comparison, with hand-written packing loops. The last line is "demo: N patterns, N verified".
#include "device.h"
#include "examples/common/shared.h"
#include "examples/common/software_device.h"
#include "measure.h"
#include "report.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <fmt/core.h>
#include <map>

using namespace examples;

namespace
{

struct options {
    std::vector<std::string> tls{"shm", "tcp", "device"};
    bool is_tls_chosen = false;
    std::vector<std::string> only;
    measure_settings measured{11, 0.008};
    unsigned limit_s = 120;
    bool json        = false;
    bool list        = false;
};

// lay_copy is the transport that moves bytes between windows and the buffers of other transports.
const std::map<std::string, std::string> named_transports{
    {"shm", "posix,sysv,lay_copy"}, {"tcp", "tcp,lay_copy"}, {"device", "rc_x,lay_copy"}, {"default", ""}};

// Times on the software device are not those of a card, so few are enough.
constexpr unsigned most_software_rounds = 3;

void describe(CLI::App& app, options& into)
{
    app.add_option("--tls", into.tls,
                   "shm, tcp, device (a network card, or the software device if there is none), default (what UCX\n"
                   "selects by itself) or any value for UCX_TLS; repeatable")
        ->take_all()
        ->capture_default_str();
    app.add_option("--only", into.only, "only the patterns whose name contains this; repeatable")->take_all();
    app.add_option("--rounds", into.measured.rounds, "rounds of every method")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--round-time", into.measured.seconds_a_round, "seconds of one round")
        ->check(CLI::Range(1e-4, 10.0))
        ->capture_default_str();
    app.add_option("--time-limit", into.limit_s, "seconds until a selection of transports is given up")
        ->check(CLI::Range(1, 86400))
        ->capture_default_str();
    app.add_flag("--json", into.json, "print JSON instead of a table");
    app.add_flag("--list", into.list, "print the patterns and end");
}

pattern_list wanted_patterns(const options& wanted)
{
    pattern_list all = all_patterns();
    if (!wanted.only.empty()) {
        std::erase_if(all, [&](const pattern& one) {
            return std::ranges::none_of(wanted.only, [&](const auto& text) { return one.name.contains(text); });
        });
    }
    return all;
}

void run_patterns(team& both, const pattern_list& patterns, unsigned transport_index, const transport& used,
                  const measure_settings& settings, row_board& board)
{
    if (used.ucx_tls.empty()) {
        unsetenv("UCX_TLS");
    } else {
        setenv("UCX_TLS", used.ucx_tls.c_str(), 1);
    }
    if (used.is_device()) {
        // Otherwise UCX lets the CPU copy short messages, also contiguous ones.
        setenv("UCX_RNDV_THRESH", "0", 1);
        setenv("UCX_RNDV_SCHEME", "get_zcopy", 1);
    }
    const auto link = ucx_link::create(both);
    for (unsigned i = 0; i < patterns.size(); ++i) {
        row result       = measure(both, *link, patterns[i], settings);
        result.pattern   = i;
        result.transport = transport_index;
        if (both.rank() == 0) {
            const unsigned next = board.count.load();
            board.rows[next]    = result;
            board.count.store(next + 1, std::memory_order_release);
        }
    }
    link->close();
}

// By the CPU, through windows.
std::uint64_t copied_bytes(unsigned transport_index, const row_board& board)
{
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < board.count.load(); ++i) {
        sum += board.rows[i].transport == transport_index ? board.rows[i].copied_bytes : 0;
    }
    return sum;
}

// Why there is no device for the demo; empty if there is one.
std::string why_no_device()
{
    return !ucx_has_devices()      ? "this UCX has no transports for network cards"
           : find_device().empty() ? "there is no mlx5 device with an active port, and no softhca-run"
                                   : "";
}

std::vector<transport> wanted_transports(const options& wanted)
{
    std::vector<transport> transports;
    for (const std::string& name : wanted.tls) {
        const auto known = named_transports.find(name);
        transports.push_back({.name        = name,
                              .ucx_tls     = known == named_transports.end() ? name : known->second,
                              .device      = "",
                              .is_software = is_software_device()});
        if (name != "device") {
            continue;
        }
        transports.back().device = find_device();
        if (const std::string reason = why_no_device(); !reason.empty()) {
            if (wanted.is_tls_chosen) {
                throw std::runtime_error("--tls device: " + reason);
            }
            if (!wanted.json) {
                fmt::print("without --tls device: {}\n", reason);
            }
            transports.pop_back();
        }
    }
    return transports;
}

// Counts a pattern if it was verified over every selection of transports.
std::size_t count_verified(std::size_t patterns, std::size_t transports, const std::vector<row>& rows)
{
    std::vector<std::size_t> good(patterns);
    for (const row& result : rows) {
        good[result.pattern] += result.verified;
    }
    return static_cast<std::size_t>(std::ranges::count(good, transports));
}

int run(const options& wanted)
{
    const pattern_list patterns = wanted_patterns(wanted);
    if (wanted.list) {
        for (const pattern& one : patterns) {
            fmt::print("{:<16} {}\n", one.name, one.description);
        }
        return 0;
    }
    const std::vector<transport> transports = wanted_transports(wanted);
    if (patterns.empty() || patterns.size() * transports.size() > row_board::max_rows) {
        fmt::print(stderr, "ucx_layout_demo: no pattern has such a name, or too many --tls; see --list\n");
        return 2;
    }

    const auto board    = make_shared_array<row_board>(1);
    unsigned printed    = 0;
    unsigned failed     = 0;
    const auto show_new = [&] {
        for (; printed < board[0].count.load(std::memory_order_acquire); ++printed) {
            if (!wanted.json) {
                print_row(board[0].rows[printed], patterns[board[0].rows[printed].pattern]);
            }
        }
    };
    for (unsigned t = 0; t < transports.size(); ++t) {
        if (!wanted.json) {
            print_transport(transports[t]);
        }
        measure_settings settings = wanted.measured;
        if (transports[t].is_device() && transports[t].is_software) {
            settings.rounds = std::min(settings.rounds, most_software_rounds);
        }
        failed += run_team(
            2, std::chrono::seconds(wanted.limit_s),
            [&](team& both) { run_patterns(both, patterns, t, transports[t], settings, board[0]); }, show_new);
        if (transports[t].is_device() && !wanted.json) {
            fmt::print("bytes copied by a CPU: {}\n", copied_bytes(t, board[0]));
        }
    }

    const std::vector<row> rows(board[0].rows, board[0].rows + board[0].count.load());
    const std::size_t verified = count_verified(patterns.size(), transports.size(), rows);
    if (wanted.json) {
        print_json(patterns, transports, rows, verified);
    } else {
        fmt::print("demo: {} patterns, {} verified\n", patterns.size(), verified);
    }
    return verified == patterns.size() && failed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app("Moves the non-contiguous data of real applications between two processes over stock UCX.",
                 "ucx_layout_demo");
    describe(app, wanted);
    CLI11_PARSE(app, argc, argv);
    wanted.is_tls_chosen = app.count("--tls") != 0;
    try {
        if (!wanted.list && std::ranges::contains(wanted.tls, "device")) {
            restart_with_device(argv);
        }
        restart_without_ucx_thread(argv);
        return run(wanted);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "ucx_layout_demo: {}\n", failure.what());
        return 1;
    }
}

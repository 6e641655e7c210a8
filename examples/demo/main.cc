// ucx_layout_demo: two processes exchange the non-contiguous data of real applications over stock UCX, through windows
// and, for comparison, with hand-written packing loops. The last line is "demo: N patterns, N verified".
#include "examples/common/shared.h"
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
    std::vector<std::string> tls{"shm", "tcp"};
    std::vector<std::string> only;
    measure_settings measured{11, 0.008};
    unsigned limit_s = 120;
    bool json        = false;
    bool list        = false;
};

// lay_copy is the transport that moves bytes between windows and the buffers of other transports.
const std::map<std::string, std::string> named_transports{
    {"shm", "posix,sysv,lay_copy"}, {"tcp", "tcp,lay_copy"}, {"default", ""}};

void describe(CLI::App& app, options& into)
{
    app.add_option("--tls", into.tls,
                   "shm, tcp, default (what UCX selects by itself) or any value for UCX_TLS; repeatable")
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
    std::vector<transport> transports;
    for (const std::string& name : wanted.tls) {
        const auto known = named_transports.find(name);
        transports.push_back({name, known == named_transports.end() ? name : known->second});
    }
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
        failed += run_team(
            2, std::chrono::seconds(wanted.limit_s),
            [&](team& both) { run_patterns(both, patterns, t, transports[t], wanted.measured, board[0]); }, show_new);
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
    try {
        restart_without_ucx_thread(argv);
        return run(wanted);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "ucx_layout_demo: {}\n", failure.what());
        return 1;
    }
}

// `contrib/dev bench transfer`: one-way time between two processes of this host, of windows against MPI libraries, by
// their datatypes and packed by hand, measured in turn. What arrives is compared first.
#include "layout_case.h"
#include "row.h"
#include "worker.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

struct options {
    effort how{.rounds = 11, .sample_time = 4e-3, .most_time = 0.5};
    std::size_t max_payload = SIZE_MAX;
    std::string only;
    bool with_summary = false;
    std::string csv, json, plot;
};

// A folder for FIFOs, gone at the end.
class fifo_folder
{
public:
    fifo_folder()
    {
        if (mkdtemp(_path.data()) == nullptr) {
            throw std::runtime_error("mkdtemp");
        }
    }
    ~fifo_folder()
    {
        for (const std::string& file : _files) {
            unlink(file.c_str());
        }
        rmdir(_path.c_str());
    }
    fifo_folder(const fifo_folder&)            = delete;
    fifo_folder& operator=(const fifo_folder&) = delete;

    std::string add(const std::string& name)
    {
        const std::string made = _path + "/" + name;
        if (mkfifo(made.c_str(), 0600) != 0) {
            throw std::runtime_error("mkfifo " + made);
        }
        return _files.emplace_back(made);
    }

private:
    std::string _path = (std::filesystem::temp_directory_path() / "bench-XXXXXX").string();
    std::vector<std::string> _files;
};

// Two processes; `peer` those of an MPI library.
struct sides {
    std::string name;
    bool is_peer;
    std::unique_ptr<worker> process;
};

constexpr const char* by_window     = "window";
constexpr const char* by_contiguous = "contiguous";
constexpr const char* by_posix      = "posix contiguous";

struct launcher {
    const char* name;
    const char* library;
    std::vector<std::string> command;
};

const launcher launchers[] = {
    {"openmpi", "openmpi", {"mpirun.openmpi", "-n", "2", "--bind-to", "none", "--oversubscribe"}},
    {"openmpi-ucx",
     "openmpi",
     {"mpirun.openmpi", "-n", "2", "--bind-to", "none", "--oversubscribe", "--mca", "pml", "ucx", "--mca",
      "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"}},
    {"mpich", "mpich", {"mpiexec.mpich", "-n", "2"}},
};

std::vector<sides> start_all(fifo_folder& folder)
{
    const std::string own = BENCH_FOLDER "/bench_transfer_side";
    std::vector<sides> made;
    const auto start = [&](const std::string& name, bool is_peer, std::vector<std::string> command) {
        command.push_back(folder.add(name));
        made.push_back({name, is_peer, std::make_unique<worker>(command)});
    };
    start("ours", false, {own});
    start("posix", false, {"env", "UCX_TLS=posix,lay_copy", own});
    for (const launcher& by : launchers) {
        const std::string program = std::string(BENCH_FOLDER "/bench_mpi_transfer_") + by.library;
        if (access(program.c_str(), X_OK) != 0) {
            fmt::print(stderr, "bench transfer: without {}: there is no {}\n", by.name, program);
            continue;
        }
        std::vector<std::string> command = by.command;
        command.push_back(program);
        start(by.name, true, std::move(command));
    }
    return made;
}

row measure_row(const options& wanted, const layout_case& of, std::vector<sides>& all, bool to_strided)
{
    const std::string strided = to_strided ? "ss" : "sc";
    std::vector<contender> contenders;
    const auto add = [&](const std::string& name, sides& by, const std::string& method) {
        contenders.push_back(
            {name, [&by, method](unsigned times) { return by.process->ask(fmt::format("run {} {}", method, times)); }});
    };
    add(by_window, all[0], strided);
    add(by_contiguous, all[0], "contiguous");
    add(by_posix, all[1], "contiguous");
    for (sides& by : all) {
        if (by.is_peer) {
            add(by.name + " type", by, strided);
            add(by.name + " hand", by, strided + "-hand");
        }
    }
    return {of.name,
            of.length,
            of.num_blocks,
            "transfer",
            to_strided ? "strided to strided" : "strided to contiguous",
            alternate(wanted.how, contenders)};
}

std::vector<std::string> peers_of(const std::vector<sides>& all)
{
    std::vector<std::string> made;
    for (const sides& by : all) {
        if (by.is_peer) {
            made.insert(made.end(), {by.name + " type", by.name + " hand"});
        }
    }
    return made;
}

void print_head(const std::vector<std::string>& peers)
{
    fmt::print("window: one-way time; others: their time / that of the window; R: the best of the MPI libraries\n");
    fmt::print("{:28} {:>8} {:>4} {:>10} {:>10} {:>10}", "layout", "packed", "to", "window us", "contiguous", "posix");
    for (const std::string& peer : peers) {
        fmt::print(" {:>16}", peer);
    }
    fmt::print(" {:>6}\n", "R");
}

void print_row(const row& one, const std::vector<std::string>& peers)
{
    fmt::print("{:28} {:>8} {:>4} {:10.2f} {} {}", one.layout, size_text(one.length),
               one.way == "strided to strided" ? "ss" : "sc", one.results[0].time * 1e6,
               ratio_text(one.against(by_contiguous), 10), ratio_text(one.against(by_posix), 10));
    for (const std::string& peer : peers) {
        fmt::print(" {}", ratio_text(one.against(peer), 16));
    }
    fmt::print(" {}\n", ratio_text(one.against(peers), 6));
    std::fflush(stdout);
}

struct judged_row : row {
    bool has_blocks; // of 64 bytes or more
};

void print_misses(const std::vector<judged_row>& rows, const char* what, double least, auto&& figure)
{
    std::string misses;
    unsigned judged = 0, missed = 0;
    for (const judged_row& one : rows) {
        if (const std::optional<double> ratio = figure(one)) {
            ++judged;
            if (*ratio < least) {
                ++missed;
                misses += fmt::format("    {:5.2f}  {}\n", *ratio, one.name());
            }
        }
    }
    fmt::print("{} >= {}: {} of {} rows\n{}", what, least, judged - missed, judged, misses);
}

void print_summary(const std::vector<judged_row>& rows, const std::vector<std::string>& peers)
{
    fmt::print("\n");
    print_misses(rows, "best peer (0.97 counts as equal)", 0.97, [&](const row& one) { return one.against(peers); });
    print_misses(rows, "blocks >= 64 B, of contiguous host to host through posix", 1 / 1.1, [](const judged_row& one) {
        return one.has_blocks ? one.against(std::string(by_posix)) : std::nullopt;
    });
    fmt::print("{}\n", geomean({rows.begin(), rows.end()}, peers));
}

void run(const options& wanted)
{
    fifo_folder folder;
    std::vector<sides> all               = start_all(folder);
    const std::vector<std::string> peers = peers_of(all);
    const std::vector<case_maker> cases  = transfer_cases();
    std::vector<judged_row> rows;
    print_head(peers);
    for (std::size_t i = 0; i < cases.size(); ++i) {
        if (cases[i].payload > wanted.max_payload) {
            continue;
        }
        const layout_case of = cases[i].make();
        if (of.name.find(wanted.only) == std::string::npos) {
            continue;
        }
        for (sides& by : all) {
            if (by.process->ask(fmt::format("case {}", i)) != static_cast<double>(of.length)) {
                throw std::runtime_error(by.name + " has another length of " + of.name);
            }
        }
        for (const bool to_strided : {false, true}) {
            rows.push_back({measure_row(wanted, of, all, to_strided), of.judged_as == family::blocks});
            print_row(rows.back(), peers);
        }
    }
    const std::vector<row> plain(rows.begin(), rows.end());
    if (!wanted.csv.empty()) {
        write_csv(plain, wanted.csv);
    }
    if (!wanted.json.empty()) {
        write_json(plain, wanted.json);
    }
    if (!wanted.plot.empty()) {
        plot(plain, wanted.plot, PLOT_SCRIPT);
    }
    if (wanted.with_summary) {
        print_summary(rows, peers);
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    CLI::App app("one-way times between two processes: windows against MPI libraries");
    options wanted;
    bool quick = false;
    app.add_flag("--quick", quick, "under two minutes: coarser, payloads up to 1 MB");
    app.add_option("--only", wanted.only, "layouts whose name holds this text");
    app.add_flag("--summary", wanted.with_summary, "after the tables: goals and how often they are met");
    app.add_option("--csv", wanted.csv, "write all figures into this file");
    app.add_option("--json", wanted.json, "write all figures into this file");
    app.add_option("--plot", wanted.plot, "draw tables into files whose names begin like this");
    CLI11_PARSE(app, argc, argv);
    if (quick) {
        wanted.how         = {.rounds = 5, .sample_time = 1e-3, .most_time = 0.05};
        wanted.max_payload = std::size_t{1} << 20;
    }
    // A peer that ended is reported when its answer is missing.
    std::signal(SIGPIPE, SIG_IGN);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    try {
        run(wanted);
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench transfer: {}\n", error.what());
        return 1;
    }
    return 0;
}

// `contrib/dev bench transfer`: one-way time between two processes of this host, of windows against MPI libraries, by
// their datatypes and packed by hand, measured in turn. What arrives is compared first.
#include "bench/common/comparison.h"
#include "bench/common/cpus.h"
#include "bench/common/machine_load.h"
#include "sides.h"
#include "tax.h"
#include "transfer_pairs.h"
#include "transfer_row.h"
#include "ways.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

constexpr effort whole{.rounds = 11, .sample_time = 4e-3, .most_time = 0.5};

struct options : comparison {
    bool only_tax      = false;
    bool without_tax   = false;
    bool ways          = false;
    unsigned buffers   = 1;
    data_kind data     = data_kind::live;
    unsigned tax_pairs = 5;
};

// Of a row below the best peer: the machine may have been slow for one of the sides in many rounds, but seldom so for
// three times as many.
constexpr unsigned most_repeats = 2;

// What fits into a core's own caches is never faster past them.
constexpr std::size_t least_streaming = std::size_t{1} << 20;

std::vector<contender> contenders_of(const layout_case& of, all_pairs& pairs, bool to_strided, unsigned buffers)
{
    const std::string strided = to_strided ? "ss" : "sc";
    std::vector<contender> contenders;
    const auto add = [&](const std::string& name, pair& by, const std::string& method) {
        contenders.push_back(run_by(name, by, method));
    };
    add(by_window, pairs.window, strided);
    add(by_mapped, pairs.mapped, strided);
    for (const std::string name : {by_put, by_get, by_copy}) {
        add(name, pairs.mapped, fmt::format("{}-{}", name, strided));
    }
    add(by_contiguous, pairs.window, "contiguous");
    add(by_posix, pairs.posix, "contiguous");
    add(by_iov, pairs.stock, strided);
    add(by_hand, pairs.stock, strided + "-hand");
    for (pair& by : pairs.peers) {
        add(by.name + " type", by, strided);
        add(by.name + " hand", by, strided + "-hand");
    }
    add(by_own_work, pairs.window, "own-" + strided);
    if (to_strided && fresh_lists::has(of)) {
        const auto add_fresh = [&](const std::string& name, pair& by, const char* method) {
            add(name + with_fresh_list, by, method);
        };
        add_fresh(by_window, pairs.window, "fresh");
        add_fresh(by_mapped, pairs.mapped, "fresh");
        add_fresh(by_iov, pairs.stock, "fresh");
        add_fresh(by_hand, pairs.stock, "fresh-hand");
        for (pair& by : pairs.peers) {
            add_fresh(by.name + " type", by, "fresh");
            add_fresh(by.name + " hand", by, "fresh-hand");
        }
    }
    if (buffers > 1) {
        return contenders; // limits are of one buffer
    }
    add(by_contiguous_limit, pairs.limit, "contiguous");
    for (const limit by : all_limits) {
        for (const bool streaming : {false, true}) {
            if (!streaming || of.touched >= least_streaming) {
                const std::string name = name_of(by, streaming);
                add(name, is_queue(by) ? pairs.limit : pairs.mapped, fmt::format("{}-{}", name, strided));
            }
        }
    }
    return contenders;
}

// Again while it is below one of the peers.
transfer_row measure_row(const effort& how, const layout_case& of, all_pairs& pairs,
                         const std::vector<std::string>& peers, const std::vector<int>& cpus, bool to_strided,
                         unsigned buffers)
{
    const std::vector<contender> contenders = contenders_of(of, pairs, to_strided, buffers);
    const load_sample begin                 = sample_load(cpus);
    const double round_trip                 = measure_round_trip(pairs.limit);
    transfer_row made{{of.name, of.length, of.num_blocks, "transfer",
                       to_strided ? "strided to strided" : "strided to contiguous", alternate(how, contenders),
                       transfer_limits()},
                      of.judged_as,
                      to_strided,
                      round_trip};
    while (is_below(made, peers) && made.repeats < most_repeats) {
        append_rounds(made.results, alternate(how, contenders));
        ++made.repeats;
    }
    made.others_part = part_of_others(begin, sample_load(cpus));
    return made;
}

std::vector<std::string> names_of(const std::vector<pair>& peers)
{
    std::vector<std::string> made;
    for (const pair& by : peers) {
        made.insert(made.end(), {by.name + " type", by.name + " hand"});
    }
    return made;
}

transfer_rows measure_all(const options& wanted, all_pairs& pairs, const std::vector<std::string>& peers,
                          const std::vector<int>& cpus)
{
    const std::vector<case_maker> cases = transfer_cases();
    transfer_rows rows;
    fmt::print("{}\n", transfer_head(peers, wanted.data, wanted.buffers));
    pairs.for_each([&](pair& by) { tell_data(by, wanted.data, &by == &pairs.limit ? 1 : wanted.buffers); });
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::optional<layout_case> chosen = wanted.choose(cases[i]);
        if (!chosen) {
            continue;
        }
        const layout_case& of = *chosen;
        pairs.for_each([&](pair& by) {
            if (by.process->ask(fmt::format("case {}", i)) != static_cast<double>(of.length)) {
                throw std::runtime_error(by.name + " has another length of " + of.name);
            }
        });
        for (const bool to_strided : {false, true}) {
            rows.push_back(
                measure_row(cases[i].always ? whole : wanted.how, of, pairs, peers, cpus, to_strided, wanted.buffers));
            fmt::print("{}\n", transfer_line(rows.back(), peers));
            std::fflush(stdout);
        }
    }
    return rows;
}

void run_ways(const options& wanted, const std::optional<cpu_pair>& pinned)
{
    const transfer_rows rows = measure_ways({wanted.how, wanted.data, wanted.buffers, pinned},
                                            [&](const case_maker& from) { return wanted.choose(from); });
    write_files(wanted, {rows.begin(), rows.end()});
    if (wanted.with_summary) {
        fmt::print("\n{}", judge_ways(rows));
    }
}

void run(const options& wanted)
{
    // All that is started inherits it; each process then takes one of the two.
    const std::optional<cpu_pair> pinned = choose_two(usable_cpus());
    if (pinned) {
        keep_to(*pinned);
    }
    const std::vector<int> cpus = allowed_cpus();
    fmt::print("{}\n", pin_text(pinned));
    if (wanted.ways) {
        run_ways(wanted, pinned);
        return;
    }
    std::vector<std::string> peers;
    transfer_rows rows;
    const load_sample begin = sample_load(cpus);
    if (!wanted.only_tax) {
        scratch_folder folder;
        const shared_memory memory(pair_memory_length);
        all_pairs pairs = start_all(folder, memory.path());
        peers           = names_of(pairs.peers);
        expect_pinned(pairs, pinned);
        rows                 = measure_all(wanted, pairs, peers, cpus);
        const first_use used = measure_first_use(pairs.mapped);
        fmt::print("{}{}\n{}{}", mapped_table(rows, peers), fresh_table(rows, peers), text_of(used),
                   repeats_text(rows, peers));
    }
    std::vector<row> all(rows.begin(), rows.end());
    std::string tax_summary;
    if (!wanted.without_tax) {
        const tax paid = measure_tax(wanted.how, wanted.tax_pairs);
        fmt::print("{}", tax_table(paid));
        all.insert(all.end(), paid.rows.begin(), paid.rows.end());
        tax_summary = judge(paid);
    }
    fmt::print("{}", load_text(rows, part_of_others(begin, sample_load(cpus))));
    write_files(wanted, all);
    if (wanted.with_summary) {
        fmt::print("\n{}{}", tax_summary,
                   wanted.only_tax ? "" : judge(rows, peers, wanted.data, wanted.buffers) + "\n");
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    CLI::App app("one-way times between two processes: windows against MPI libraries");
    options wanted{{.how = whole}};
    wanted.add_to(app, "under two minutes: coarser, payloads up to 1 MB and the KV cache");
    app.add_flag("--tax", wanted.only_tax, "only the last table: contiguous memory with and without the library");
    app.add_flag("--without-tax", wanted.without_tax, "all but the last table")->excludes("--tax");
    app.add_flag("--ways", wanted.ways,
                 "instead measure the ways that windows can go, each one forced, and what UCP chooses")
        ->excludes("--tax");
    app.add_flag_callback(
        "--same-data", [&] { wanted.data = data_kind::same; },
        "nobody writes the memory before a message or reads it after it");
    app.add_option("--buffers", wanted.buffers,
                   "so many sets of memory in turn, or as many as fit into 256 MB: with many, each message finds its "
                   "memory out of the caches, as in a program that computes between messages (1)")
        ->check(CLI::Range(1u, 1u << 16));
    CLI11_PARSE(app, argc, argv);
    if (wanted.is_quick) {
        wanted.how         = {.rounds = 5, .sample_time = 1e-3, .most_time = 0.05};
        wanted.max_payload = std::size_t{1} << 20;
        wanted.tax_pairs   = 3;
    }
    setenv("UCX_LOG_FILE", "stderr", 0); // standard output carries answers
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    return report_failure("transfer", [&] { run(wanted); });
}

#include "ways.h"

#include "bench/common/comparison.h"
#include "sides.h"
#include "transfer_pairs.h"

#include <fmt/format.h>

#include <stdexcept>

namespace ucxl::bench
{

namespace
{

struct way {
    const char* name;
    const char* kind;                  // of bench_transfer_side
    std::vector<std::string> settings; // of UCX
};

// UCP takes a rendezvous for every length, so that the scheme is the only one.
std::vector<std::string> in_one_pass(const std::string& transport, const std::string& scheme,
                                     const std::string& least_shared)
{
    return {"UCX_TLS=posix,lay_copy," + transport, "UCX_LAYOUT_DIRECT_SHM_MIN=0",
            "UCX_LAYOUT_DIRECT_CMA_MIN=0",         "UCX_RNDV_THRESH=0",
            "UCX_RNDV_SCHEME=" + scheme,           "UCX_LAY_SHM_SHARE_MIN=" + least_shared};
}

const std::vector<way>& ways()
{
    const std::vector<std::string> as_it_is, staged{"UCX_TLS=posix,lay_copy", "UCX_RNDV_THRESH=inf"},
        kernel = in_one_pass("lay_cma", "get_zcopy", "inf");
    static const std::vector<way> all{
        {by_chosen, "mapped", as_it_is},
        {by_staged, "mapped", staged},
        {by_pulled, "mapped", in_one_pass("lay_shm", "get_zcopy", "inf")},
        {by_pushed, "mapped", in_one_pass("lay_shm", "put_zcopy", "inf")},
        {by_shared, "mapped", in_one_pass("lay_shm", "get_zcopy", "0")},
        {by_kernel, "mapped", kernel},
        {by_app_chosen, "window", as_it_is},
        {by_app_staged, "window", staged},
        {by_app_kernel, "window", kernel},
    };
    return all;
}

const std::vector<std::string> forced{by_staged, by_pulled, by_pushed, by_shared, by_kernel};
const std::vector<std::string> forced_in_app{by_app_staged, by_app_kernel};

std::optional<double> of_the_best(const row& one)
{
    return one.against(forced, by_chosen);
}

std::optional<double> of_the_best_in_app(const row& one)
{
    return one.against(forced_in_app, by_app_chosen);
}

std::string head(const way_options& options)
{
    std::string text = fmt::format(
        "one-way time of messages in us, {}, {}, each way forced by options; own: without a message;\n"
        "chosen: what UCP chooses; of best: the best of the ways behind it / chosen; app: over memory of the "
        "application, the\n"
        "others over memory of the library; what a way cannot carry goes as UCP wants\n"
        "{:28} {:>8} {:>4} {:>7} {:>8}",
        text_of(options.data), buffers_text(options.buffers), "layout", "packed", "to", "trip ns", "own");
    for (const way& by : ways()) {
        text += fmt::format(" {:>10}", by.name);
        if (by.name == by_kernel || by.name == by_app_kernel) {
            text += fmt::format(" {:>7}", "of best");
        }
    }
    return text;
}

std::string line(const transfer_row& row)
{
    const auto time  = [&](const char* name) { return row.find(name)->time * 1e6; };
    std::string text = fmt::format("{:28} {:>8} {:>4} {:7.0f} {:8.2f}", row.layout, size_text(row.length),
                                   row.to_strided ? "ss" : "sc", row.round_trip * 1e9, time(by_own_work));
    for (const way& by : ways()) {
        text += fmt::format(" {:10.2f}", time(by.name));
        if (by.name == by_kernel) {
            text += ' ' + ratio_text(of_the_best(row), 7);
        } else if (by.name == by_app_kernel) {
            text += ' ' + ratio_text(of_the_best_in_app(row), 7);
        }
    }
    return text;
}

transfer_row measure_row(const effort& how, const layout_case& measured_case, std::vector<pair>& pairs, pair& limit,
                         bool to_strided)
{
    const char* const strided = to_strided ? "ss" : "sc";
    std::vector<contender> contenders;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        contenders.push_back(run_by(ways()[i].name, pairs[i], strided));
    }
    contenders.push_back(run_by(by_own_work, pairs.front(), fmt::format("own-{}", strided)));
    const double round_trip = measure_round_trip(limit);
    return {{measured_case.name, measured_case.length, measured_case.num_blocks, "ways",
             to_strided ? "strided to strided" : "strided to contiguous", alternate(how, contenders)},
            measured_case.judged_as,
            to_strided,
            round_trip};
}

} // namespace

transfer_rows measure_ways(const way_options& options,
                           const std::function<std::optional<layout_case>(const case_maker& from)>& choose)
{
    scratch_folder folder;
    const shared_memory memory(pair_memory_length);
    std::vector<pair> pairs;
    for (const way& by : ways()) {
        pairs.push_back(start_side(folder, memory.path(), by.name, by.kind, by.settings));
    }
    pair limit          = start_limit(folder, memory.path());
    const auto ask_each = [&](const std::string& question, double expected) {
        const auto ask = [&](pair& by) {
            if (by.process->ask(question) != expected) {
                throw std::runtime_error(fmt::format("{} answers \"{}\" otherwise", by.name, question));
            }
        };
        for (pair& by : pairs) {
            ask(by);
        }
        ask(limit);
    };
    if (options.cpus) {
        ask_each("cpus", options.cpus->first + cpu_factor * options.cpus->second);
    }
    for (pair& by : pairs) {
        tell_data(by, options.data, options.buffers);
    }
    fmt::print("{}\n", head(options));
    transfer_rows rows;
    const std::vector<case_maker> cases = transfer_cases();
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::optional<layout_case> chosen = choose(cases[i]);
        if (!chosen) {
            continue;
        }
        ask_each(fmt::format("case {}", i), static_cast<double>(chosen->length));
        for (const bool to_strided : {false, true}) {
            rows.push_back(measure_row(options.how, *chosen, pairs, limit, to_strided));
            fmt::print("{}\n", line(rows.back()));
            std::fflush(stdout);
        }
    }
    return rows;
}

std::string judge_ways(const transfer_rows& rows)
{
    return judge_by(rows, "memory of the library: chosen, of the best way", as_good,
                    [](const transfer_row& row) { return of_the_best(row); }) +
           judge_by(rows, "memory of the application: chosen, of the best way", as_good,
                    [](const transfer_row& row) { return of_the_best_in_app(row); });
}

} // namespace ucxl::bench

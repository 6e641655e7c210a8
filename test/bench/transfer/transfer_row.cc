#include "transfer_row.h"

#include "bench/common/comparison.h"
#include "bench/common/machine_load.h"
#include "sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace ucxl::bench
{

namespace
{

std::string microseconds(const row& one, const char* by)
{
    const measured* const found = one.find(by);
    return found == nullptr ? fmt::format("{:>10}", "-") : fmt::format("{:10.2f}", found->time * 1e6);
}

std::string place(const transfer_row& row)
{
    return fmt::format("{:28} {:>8} {:>4}", row.layout, size_text(row.length), row.to_strided ? "ss" : "sc");
}

std::string part_text(const std::optional<double>& part)
{
    return part ? fmt::format("{:.0f} %{}", *part * 100, *part >= idle_part ? "!" : "") : "-";
}

bool is_64_kilobytes(const row& one)
{
    return one.length > 60000 && one.length <= 65536;
}

// Of memory of the library.
std::string judge_mapped(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    std::string text;
    for (const char* by : {by_put, by_get, by_mapped}) {
        text += judge_by(rows, fmt::format("{}, of the copy within one process", by), 0.95,
                         [&](const transfer_row& row) { return row.against(by_copy, by); });
    }
    for (const char* by : {by_put, by_get}) {
        text += judge_by(rows, fmt::format("{}, blocks >= 64 B, 64 KB, in a microsecond", by), 1,
                         [&](const transfer_row& row) {
                             const bool counts = row.judged_as == family::blocks && is_64_kilobytes(row);
                             return counts ? std::optional(1e-6 / row.find(by)->time) : std::nullopt;
                         });
    }
    for (const char* by : {by_mapped, by_put, by_get}) {
        text += judge_by(rows, fmt::format("{}, KV cache, of the best peer", by), 3, [&](const transfer_row& row) {
            return row.layout.starts_with("KV cache") ? row.against(peers, by) : std::nullopt;
        });
    }
    return text;
}

// R and M of the rows of each size, of cores that were near to each other and of others.
std::string by_size(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    struct band {
        const char* name;
        std::size_t least, end;
    };
    constexpr std::size_t kilo = 1024;
    constexpr band bands[]     = {{"below 16 KB", 0, 15 * kilo},
                                  {"16 to 256 KB", 15 * kilo, 257 * kilo},
                                  {"1 MB", 257 * kilo, 2048 * kilo},
                                  {"more", 2048 * kilo, SIZE_MAX}};
    std::string text;
    for (const bool is_near : {true, false}) {
        for (const band& sizes : bands) {
            std::vector<row> chosen;
            std::ranges::copy_if(rows, std::back_inserter(chosen), [&](const transfer_row& one) {
                return (one.round_trip < near_round_trip) == is_near && one.length >= sizes.least &&
                       one.length < sizes.end;
            });
            for (const char* by : chosen.empty() ? std::vector<const char*>{} : std::vector{by_window, by_mapped}) {
                text += fmt::format("{} cores, {}, {}: {}\n", is_near ? "near" : "far", sizes.name, by,
                                    geomean(chosen, [&](const row& one) { return one.against(peers, by); }));
            }
        }
    }
    return text;
}

} // namespace

std::string text_of(data_kind data)
{
    return data == data_kind::live ? "live data" : "the same data";
}

std::string buffers_text(unsigned buffers)
{
    return buffers == 1 ? "one buffer" : fmt::format("{} buffers in turn", buffers);
}

std::string transfer_head(const std::vector<std::string>& peers, data_kind data, unsigned buffers)
{
    std::string head = data == data_kind::live ? "live data: before each message the sender writes one byte of each "
                                                 "cache line that it sends, after it the\n"
                                                 "receiver reads one of each; in all times, own: without a message; "
                                                 "put, get, copy: the process that moves\n"
                                               : "the same data: nobody writes or reads the memory between messages\n";
    if (buffers > 1) {
        head += buffers_text(buffers) + "; limits are not measured with these\n";
    }
    head += "trip: a cache line's way to the other core and back, before the row\n";
    head += "window: one-way time over memory of the application, mapped: over memory of the library; "
            "others: their time /\n"
            "that of the window; R, M: the best of the MPI libraries / window, mapped, and the middle half "
            "of its rounds;\n"
            "of limit, M of l.: time of the limit / window, mapped: a bare queue, or for mapped one pass if "
            "that is faster;\n"
            "others: of the two CPUs' time, what other processes took; again: how often the row was "
            "measured again\n";
    head += fmt::format("{:28} {:>8} {:>4} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}", "layout", "packed",
                        "to", "trip ns", "own us", "window us", "mapped us", "contiguous", "posix", by_iov, by_hand);
    for (const std::string& peer : peers) {
        head += fmt::format(" {:>16}", peer);
    }
    return head + fmt::format(" {:>6} {:>13} {:>6} {:>13} {:>9} {:>9} {:>6} {:>5}", "R", "its rounds", "M",
                              "its rounds", "of limit", "M of l.", "others", "again");
}

std::string transfer_line(const transfer_row& row, const std::vector<std::string>& peers)
{
    std::string line =
        fmt::format("{} {:7.0f} {} {} {}", place(row), row.round_trip * 1e9, microseconds(row, by_own_work),
                    microseconds(row, by_window), microseconds(row, by_mapped));
    for (const char* other : {by_contiguous, by_posix, by_iov, by_hand}) {
        line += ' ' + ratio_text(row.against(other), 10);
    }
    for (const std::string& peer : peers) {
        line += ' ' + ratio_text(row.against(peer), 16);
    }
    for (const char* mine : {by_window, by_mapped}) {
        line += fmt::format(" {} {}", ratio_text(row.against(peers, mine), 6),
                            spread_text(row.spread_against(peers, mine), 13));
    }
    return line + fmt::format(" {} {} {:>6} {:>5}", ratio_text(row.of_the_limit(by_window), 9),
                              ratio_text(row.of_the_limit(by_mapped), 9), part_text(row.others_part), row.repeats);
}

std::string mapped_table(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    std::string table = fmt::format(
        "\nmemory of the library, that one process reaches while the other one sleeps; of copy: of the "
        "same within one\n"
        "process; of limit: of one pass over the same cache lines by memcpy or past the caches; of peers: the "
        "best one-way\n"
        "time of the MPI libraries / that\n{:28} {:>8} {:>4}",
        "layout", "packed", "to");
    for (const char* by : {by_copy, by_put, by_get}) {
        table += fmt::format(" {:>10}", fmt::format("{} us", by));
    }
    table += fmt::format(" {:>11} {:>11} {:>12} {:>12} {:>13} {:>13}\n", "put of copy", "get of copy", "put of limit",
                         "get of limit", "put of peers", "get of peers");
    for (const transfer_row& row : rows) {
        table += fmt::format("{} {} {} {} {} {} {} {} {} {}\n", place(row), microseconds(row, by_copy),
                             microseconds(row, by_put), microseconds(row, by_get),
                             ratio_text(row.against(by_copy, by_put), 11), ratio_text(row.against(by_copy, by_get), 11),
                             ratio_text(row.of_the_limit(by_put), 12), ratio_text(row.of_the_limit(by_get), 12),
                             ratio_text(row.against(peers, by_put), 13), ratio_text(row.against(peers, by_get), 13));
    }
    return table;
}

std::vector<limited> transfer_limits()
{
    const auto ways = [](std::initializer_list<limit> limits) {
        std::vector<std::string> names;
        for (const limit by : limits) {
            names.insert(names.end(), {name_of(by, false), name_of(by, true)});
        }
        return names;
    };
    return {{by_window, ways({limit::queue, limit::short_queue})},
            {by_mapped, ways({limit::queue, limit::short_queue, limit::direct})},
            {by_put, ways({limit::pass})},
            {by_get, ways({limit::pass})}};
}

std::string text_of(const first_use& use)
{
    return use.length == 0
               ? ""
               : fmt::format("first use of {} of shared memory by a peer: {:.0f} us for a word of each page, "
                             "mapping and page faults included; again: {:.0f} us\n",
                             size_text(use.length), use.first * 1e6, use.again * 1e6);
}

namespace
{

std::vector<std::string> with_fresh_lists(const std::vector<std::string>& methods)
{
    std::vector<std::string> made;
    for (const std::string& method : methods) {
        made.push_back(method + with_fresh_list);
    }
    return made;
}

std::string fresh(const char* method)
{
    return std::string(method) + with_fresh_list;
}

} // namespace

std::string fresh_table(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    std::string table;
    for (const transfer_row& row : rows) {
        if (row.find(fresh(by_mapped)) == nullptr) {
            continue;
        }
        table += fmt::format(
            "\n{}, a list that nobody used before for each message, made and released inside the time\n", row.layout);
        for (const char* method : {by_window, by_mapped, by_iov, by_hand}) {
            table += fmt::format("  {:18} {} us\n", method, microseconds(row, fresh(method).c_str()));
        }
        for (const std::string& peer : with_fresh_lists(peers)) {
            table += fmt::format("  {:18} {} us\n", peer.substr(0, peer.size() - std::string(with_fresh_list).size()),
                                 microseconds(row, peer.c_str()));
        }
    }
    return table;
}

std::string judge_fresh(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    std::vector<std::string> others = with_fresh_lists(peers);
    others.insert(others.end(), {fresh(by_iov), fresh(by_hand)});
    double product = 1;
    unsigned count = 0;
    for (const transfer_row& one : rows) {
        if (const auto ratio = one.against(others, fresh(by_mapped))) {
            product *= *ratio;
            ++count;
        }
    }
    return count == 0 ? "fresh lists: -\n"
                      : fmt::format("fresh lists: {:.2f}\n", std::pow(product, 1.0 / static_cast<double>(count)));
}

bool is_below(const row& one, const std::vector<std::string>& peers)
{
    for (const char* by : {by_window, by_mapped}) {
        if (one.against(peers, by).value_or(as_fast) < as_fast) {
            return true;
        }
    }
    return false;
}

std::string repeats_text(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    unsigned repeated = 0, times = 0, still = 0;
    for (const transfer_row& row : rows) {
        repeated += row.repeats > 0 ? 1 : 0;
        times += row.repeats;
        still += row.repeats > 0 && is_below(row, peers) ? 1 : 0;
    }
    return fmt::format("measured again, because R or M was below {}: {} of {} rows, {} times in all; {} of them stayed "
                       "below; their figures are of all rounds together\n",
                       as_fast, repeated, rows.size(), times, still);
}

std::string load_text(const transfer_rows& rows, std::optional<double> whole_run)
{
    if (!whole_run) {
        return "machine: the kernel does not tell what other processes took of the two CPUs\n";
    }
    const auto busy =
        std::ranges::count_if(rows, [](const row& one) { return one.others_part.value_or(0) >= idle_part; });
    const bool idle = *whole_run < idle_part && busy == 0;
    return fmt::format(
        "machine: {}; other processes took {:.1f} % of the two CPUs' time, and {:.0f} % or more in {} of "
        "{} rows (!)\n",
        idle ? "idle but for this" : "NOT IDLE", *whole_run * 100, idle_part * 100, busy, rows.size());
}

std::string judge(const transfer_rows& rows, const std::vector<std::string>& peers, data_kind data, unsigned buffers)
{
    const std::vector<row> plain(rows.begin(), rows.end());
    std::string text;
    for (const char* by : {by_window, by_mapped}) {
        text += judge_by(rows, fmt::format("{}, of the best peer ({} counts as equal)", by, as_fast), as_fast,
                         [&](const row& one) { return one.against(peers, by); });
    }
    text += judge_by(
        rows, "window, blocks >= 64 B, of contiguous host to host through posix", 1 / 1.1,
        [](const transfer_row& row) { return row.judged_as == family::blocks ? row.against(by_posix) : std::nullopt; });
    // No layout is involved: what UCX itself leaves of the limit.
    text += judge_by(rows, "plain contiguous messages of stock UCX, by its choice or posix, of a bare queue", 0.95,
                     [](const transfer_row& row) {
                         const auto chosen = row.against({by_contiguous_limit}, by_contiguous),
                                    posix  = row.against({by_contiguous_limit}, by_posix);
                         return chosen && posix ? std::optional(std::max(*chosen, *posix)) : std::nullopt;
                     });
    text += judge_mapped(rows, peers);
    const std::string kind = ", " + text_of(data) + (buffers > 1 ? ", " + buffers_text(buffers) : "");
    text += by_size(rows, peers);
    text += fmt::format("one array: {}\n",
                        geomean(plain, [&](const row& one) { return one.against(peers, by_mapped); }, kind));
    text += judge_fresh(rows, peers);
    return text + of_the_limit(plain) + '\n' + geomean(plain, [&](const row& one) { return one.against(peers); }, kind);
}

} // namespace ucxl::bench

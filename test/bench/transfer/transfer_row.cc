#include "transfer_row.h"

#include "bench/common/comparison.h"

#include <fmt/format.h>

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

} // namespace

std::string transfer_head(const std::vector<std::string>& peers)
{
    std::string head = "window: one-way time over memory of the application, mapped: over memory of the library; "
                       "others: their time /\n"
                       "that of the window; R, M: the best of the MPI libraries / window, mapped\n";
    head += fmt::format("{:28} {:>8} {:>4} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}", "layout", "packed", "to",
                        "window us", "mapped us", "contiguous", "posix", by_iov, by_hand);
    for (const std::string& peer : peers) {
        head += fmt::format(" {:>16}", peer);
    }
    return head + fmt::format(" {:>6} {:>6}", "R", "M");
}

std::string transfer_line(const transfer_row& row, const std::vector<std::string>& peers)
{
    std::string line = fmt::format("{} {} {}", place(row), microseconds(row, by_window), microseconds(row, by_mapped));
    for (const char* other : {by_contiguous, by_posix, by_iov, by_hand}) {
        line += ' ' + ratio_text(row.against(other), 10);
    }
    for (const std::string& peer : peers) {
        line += ' ' + ratio_text(row.against(peer), 16);
    }
    return line +
           fmt::format(" {} {}", ratio_text(row.against(peers), 6), ratio_text(row.against(peers, by_mapped), 6));
}

std::string mapped_table(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    std::string table =
        fmt::format("\nmemory of the library, that one process reaches while the other one sleeps; of copy: of the "
                    "same within one\n"
                    "process; of peers: the best one-way time of the MPI libraries / that\n{:28} {:>8} {:>4}",
                    "layout", "packed", "to");
    for (const char* by : {by_copy, by_put, by_get}) {
        table += fmt::format(" {:>10}", fmt::format("{} us", by));
    }
    table +=
        fmt::format(" {:>11} {:>11} {:>13} {:>13}\n", "put of copy", "get of copy", "put of peers", "get of peers");
    for (const transfer_row& row : rows) {
        table += fmt::format("{} {} {} {} {} {} {} {}\n", place(row), microseconds(row, by_copy),
                             microseconds(row, by_put), microseconds(row, by_get),
                             ratio_text(row.against(by_copy, by_put), 11), ratio_text(row.against(by_copy, by_get), 11),
                             ratio_text(row.against(peers, by_put), 13), ratio_text(row.against(peers, by_get), 13));
    }
    return table;
}

std::string judge(const transfer_rows& rows, const std::vector<std::string>& peers)
{
    const std::vector<row> plain(rows.begin(), rows.end());
    std::string text;
    for (const char* by : {by_window, by_mapped}) {
        text += judge_by(rows, fmt::format("{}, of the best peer (0.97 counts as equal)", by), 0.97,
                         [&](const row& one) { return one.against(peers, by); });
    }
    text += judge_by(
        rows, "window, blocks >= 64 B, of contiguous host to host through posix", 1 / 1.1,
        [](const transfer_row& row) { return row.judged_as == family::blocks ? row.against(by_posix) : std::nullopt; });
    text += judge_mapped(rows, peers);
    text += fmt::format("mapped: {}\n", geomean(plain, [&](const row& one) { return one.against(peers, by_mapped); }));
    return text + geomean(plain, peers);
}

} // namespace ucxl::bench

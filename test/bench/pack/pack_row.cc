#include "pack_row.h"

#include "bench/common/comparison.h"

#include <fmt/format.h>

namespace ucxl::bench
{

namespace
{

const std::string others[] = {by_memcpy, by_streaming, by_hand, by_rt, by_tuned, by_blas, pack_peers[0], pack_peers[1]};

struct goal {
    const char* what;
    double least;
    // Nothing: the row is not judged by it.
    std::optional<double> (*figure)(const pack_row& row);
};

// One of a family.
template <family judged_as, bool cold>
std::optional<double> ratio_of(const pack_row& row, const char* other)
{
    return row.judged_as == judged_as && row.cold == cold ? row.against(std::string(other)) : std::nullopt;
}

const goal goals[] = {
    {"best peer (0.97 counts as equal)", 0.97, [](const pack_row& row) { return row.against(pack_peers); }},
    {"blocks >= 64 B, hot, of memcpy", 0.85,
     [](const pack_row& row) { return ratio_of<family::blocks, false>(row, by_memcpy); }},
    {"blocks >= 64 B, cold, of streaming stores", 0.9,
     [](const pack_row& row) { return ratio_of<family::blocks, true>(row, by_streaming); }},
    {"vector of struct, hot, of memcpy", 0.45,
     [](const pack_row& row) { return ratio_of<family::nested, false>(row, by_memcpy); }},
    {"column panels, of the best peer", 8,
     [](const pack_row& row) { return row.judged_as == family::panel ? row.against(pack_peers) : std::nullopt; }},
    {"column panels, of OpenBLAS omatcopy", 0.8, [](const pack_row& row) { return row.against(std::string(by_blas)); }},
    {"lists, hot, of memcpy", 0.6, [](const pack_row& row) { return ratio_of<family::list, false>(row, by_memcpy); }},
};

} // namespace

std::string table_head()
{
    std::string head = fmt::format("{:28} {:>8} {:>6} {:>7}", "layout", "packed", "way", "GB/s");
    for (const std::string& other : others) {
        head += fmt::format(" {:>8}", other);
    }
    return head + fmt::format(" {:>7}", "R");
}

std::string table_line(const pack_row& row)
{
    std::string line = fmt::format("{:28} {:>8} {:>6} {:7.2f}", row.layout, size_text(row.length), row.way, row.rate());
    for (const std::string& other : others) {
        line += ' ' + ratio_text(row.against(other), 8);
    }
    return line + ' ' + ratio_text(row.against(pack_peers), 7);
}

std::string judge(const std::vector<pack_row>& rows)
{
    std::string text;
    for (const goal& by : goals) {
        text += judge_by(rows, by.what, by.least, by.figure);
    }
    return text;
}

} // namespace ucxl::bench

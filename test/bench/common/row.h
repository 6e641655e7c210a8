// A row of a table: one case moved in one way by the thing under test and by everybody else.
#pragma once

#include "measure.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ucxl::bench
{

// What a method cannot be faster than: the fastest of these, measured beside it.
struct limited {
    std::string method;
    std::vector<std::string> limits;
};

struct row {
    std::string layout;
    std::size_t length, num_blocks;
    std::string table, way;
    std::vector<measured> results;       // the first one is ours
    std::vector<limited> limits{};       // of those methods that have one
    unsigned repeats = 0;                // how often all of it was measured again
    std::optional<double> others_part{}; // of the CPUs' time that other processes took

    std::string name() const;
    double rate() const { return static_cast<double>(length) / results[0].time * 1e-9; } // GB/s
    // Time of another one / ours.
    std::optional<double> against(const std::string& other) const;
    // Of the fastest of some.
    std::optional<double> against(std::span<const std::string> others) const;
    // The same for `mine` instead of ours.
    std::optional<double> against(const std::string& other, const std::string& mine) const;
    std::optional<double> against(std::span<const std::string> others, const std::string& mine) const;
    // How much the rounds of that differ.
    std::optional<quartiles> spread_against(std::span<const std::string> others, const std::string& mine) const;
    // Time of its limit / its own. Nothing: it has none, or was not measured.
    std::optional<double> of_the_limit(const std::string& mine) const;
    // Null: it was not measured.
    const measured* find(const std::string& name) const;
};

std::string size_text(std::size_t bytes);
// "LOW-HIGH"; "-" for nothing.
std::string spread_text(const std::optional<quartiles>& spread, int width);
// "-" for nothing.
std::string ratio_text(std::optional<double> ratio, int width);

// "geomean R of N rows, worst R (ROW)". What was measured under other than the usual conditions says so behind "rows".
std::string geomean(const std::vector<row>& rows, const std::function<std::optional<double>(const row& one)>& figure,
                    std::string_view conditions = "");
// R being against(peers).
std::string geomean(const std::vector<row>& rows, std::span<const std::string> peers);

// "of the limit: N of M rows >= 0.95, worst R (ROW)", of every method of every row that has a limit.
std::string of_the_limit(const std::vector<row>& rows);

void write_csv(const std::vector<row>& rows, const std::string& file);
void write_json(const std::vector<row>& rows, const std::string& file);
// Pictures PREFIX-*.png and the figures PREFIX.csv; `script` is plot.py.
void plot(const std::vector<row>& rows, const std::string& prefix, const std::string& script);

} // namespace ucxl::bench

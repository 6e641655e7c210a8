// A row of a table: one case moved in one way by the thing under test and by everybody else.
#pragma once

#include "measure.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ucxl::bench
{

struct row {
    std::string layout;
    std::size_t length, num_blocks;
    std::string table, way;
    std::vector<measured> results; // the first one is ours

    std::string name() const;
    double rate() const { return static_cast<double>(length) / results[0].time * 1e-9; } // GB/s
    // Time of another one / ours.
    std::optional<double> against(const std::string& other) const;
    // Of the fastest of some.
    std::optional<double> against(std::span<const std::string> others) const;
    // The same for `mine` instead of ours.
    std::optional<double> against(const std::string& other, const std::string& mine) const;
    std::optional<double> against(std::span<const std::string> others, const std::string& mine) const;
    // Null: it was not measured.
    const measured* find(const std::string& name) const;
};

std::string size_text(std::size_t bytes);
// "-" for nothing.
std::string ratio_text(std::optional<double> ratio, int width);

// "geomean R of N rows, worst R (ROW)".
std::string geomean(const std::vector<row>& rows, const std::function<std::optional<double>(const row& one)>& figure);
// R being against(peers).
std::string geomean(const std::vector<row>& rows, std::span<const std::string> peers);

void write_csv(const std::vector<row>& rows, const std::string& file);
void write_json(const std::vector<row>& rows, const std::string& file);
// Pictures PREFIX-*.png and the figures PREFIX.csv; `script` is plot.py.
void plot(const std::vector<row>& rows, const std::string& prefix, const std::string& script);

} // namespace ucxl::bench

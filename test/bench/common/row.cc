#include "row.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

std::ofstream opened(const std::string& file)
{
    std::ofstream made(file);
    made.exceptions(std::ios::failbit | std::ios::badbit);
    return made;
}

constexpr double least_of_the_limit = 0.95;

} // namespace

std::string size_text(std::size_t bytes)
{
    return bytes < 1000000 ? fmt::format("{:.0f} KB", static_cast<double>(bytes) / 1024)
                           : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1048576);
}

std::string ratio_text(std::optional<double> ratio, int width)
{
    return !ratio           ? fmt::format("{:>{}}", "-", width)
           : *ratio < 99.95 ? fmt::format("{:{}.2f}", *ratio, width)
                            : fmt::format("{:{}.0f}", *ratio, width);
}

std::string spread_text(const std::optional<quartiles>& spread, int width)
{
    return spread ? fmt::format("{:>{}}", ratio_text(spread->low, 0) + "-" + ratio_text(spread->high, 0), width)
                  : fmt::format("{:>{}}", "-", width);
}

std::string row::name() const
{
    return fmt::format("{}, {}, {} {}", layout, size_text(length), table, way);
}

const measured* row::find(const std::string& name) const
{
    const auto found = std::ranges::find(results, name, &measured::name);
    return found == results.end() ? nullptr : &*found;
}

std::optional<double> row::against(const std::string& other) const
{
    return against(other, results[0].name);
}

std::optional<double> row::against(std::span<const std::string> others) const
{
    return against(others, results[0].name);
}

std::optional<double> row::against(const std::string& other, const std::string& mine) const
{
    const measured *theirs = find(other), *own = find(mine);
    return theirs == nullptr || own == nullptr ? std::nullopt : std::optional(ratio_between(*theirs, *own));
}

std::optional<double> row::against(std::span<const std::string> others, const std::string& mine) const
{
    std::optional<double> least;
    for (const std::string& other : others) {
        if (const std::optional<double> ratio = against(other, mine)) {
            least = std::min(least.value_or(*ratio), *ratio);
        }
    }
    return least;
}

std::optional<quartiles> row::spread_against(std::span<const std::string> others, const std::string& mine) const
{
    const measured* const own = find(mine);
    std::optional<quartiles> least;
    for (const std::string& other : others) {
        const measured* const theirs = find(other);
        if (theirs == nullptr || own == nullptr) {
            continue;
        }
        const quartiles spread = ratios_between(*theirs, *own);
        if (!least || spread.middle < least->middle) {
            least = spread;
        }
    }
    return least;
}

std::optional<double> row::of_the_limit(const std::string& mine) const
{
    const auto found = std::ranges::find(limits, mine, &limited::method);
    return found == limits.end() ? std::nullopt : against(found->limits, mine);
}

std::string geomean(const std::vector<row>& rows, const std::function<std::optional<double>(const row& one)>& figure,
                    std::string_view conditions)
{
    double logs = 0, least = 0;
    unsigned count   = 0;
    const row* worst = nullptr;
    for (const row& one : rows) {
        if (const std::optional<double> ratio = figure(one)) {
            logs += std::log(*ratio);
            ++count;
            if (worst == nullptr || *ratio < least) {
                worst = &one;
                least = *ratio;
            }
        }
    }
    if (worst == nullptr) {
        return "no peers";
    }
    return fmt::format("geomean {:.2f} of {} rows{}, worst {:.2f} ({})", std::exp(logs / count), count, conditions,
                       least, worst->name());
}

std::string geomean(const std::vector<row>& rows, std::span<const std::string> peers)
{
    return geomean(rows, [&](const row& one) { return one.against(peers); });
}

std::string of_the_limit(const std::vector<row>& rows)
{
    unsigned judged = 0, reached = 0;
    double worst = std::numeric_limits<double>::infinity();
    std::string where;
    for (const row& one : rows) {
        for (const limited& by : one.limits) {
            if (const std::optional<double> ratio = one.of_the_limit(by.method)) {
                ++judged;
                reached += *ratio >= least_of_the_limit ? 1 : 0;
                if (*ratio < worst) {
                    worst = *ratio;
                    where = fmt::format("{}, {}", by.method, one.name());
                }
            }
        }
    }
    return judged == 0 ? "of the limit: 0 of 0 rows >= 0.95"
                       : fmt::format("of the limit: {} of {} rows >= {:.2f}, worst {:.2f} ({})", reached, judged,
                                     least_of_the_limit, worst, where);
}

namespace
{

// Empty for nothing.
std::string cell(const std::optional<double>& number)
{
    return number ? fmt::format("{:.4g}", *number) : "";
}

} // namespace

void write_csv(const std::vector<row>& rows, const std::string& file)
{
    std::ofstream out = opened(file);
    out << "layout,packed,blocks,table,way,method,seconds,gigabytes_per_second,time_by_ours,seconds_low,seconds_high,"
           "time_by_ours_low,time_by_ours_high,of_the_limit,repeats,others_part\n";
    for (const row& one : rows) {
        for (const measured& result : one.results) {
            const quartiles seconds = quartiles_of(result.rounds), ratio = ratios_between(result, one.results[0]);
            out << fmt::format("\"{}\",{},{},{},{},\"{}\",{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{:.4g},{},{},{}\n",
                               one.layout, one.length, one.num_blocks, one.table, one.way, result.name, result.time,
                               static_cast<double>(one.length) / result.time * 1e-9, result.ratio, seconds.low,
                               seconds.high, ratio.low, ratio.high, cell(one.of_the_limit(result.name)), one.repeats,
                               cell(one.others_part));
        }
    }
}

void write_json(const std::vector<row>& rows, const std::string& file)
{
    nlohmann::json all = nlohmann::json::array();
    for (const row& one : rows) {
        nlohmann::json made{{"layout", one.layout}, {"packed", one.length}, {"blocks", one.num_blocks},
                            {"table", one.table},   {"way", one.way},       {"repeats", one.repeats}};
        if (one.others_part) {
            made["others_part"] = *one.others_part;
        }
        for (const measured& result : one.results) {
            const quartiles seconds = quartiles_of(result.rounds), ratio = ratios_between(result, one.results[0]);
            nlohmann::json& method = made["methods"][result.name];
            method                 = {{"seconds", result.time},
                                      {"time_by_ours", result.ratio},
                                      {"seconds_quartiles", {seconds.low, seconds.high}},
                                      {"time_by_ours_quartiles", {ratio.low, ratio.high}}};
            if (const std::optional<double> reached = one.of_the_limit(result.name)) {
                method["of_the_limit"] = *reached;
            }
        }
        all.push_back(std::move(made));
    }
    opened(file) << all.dump(1) << '\n';
}

void plot(const std::vector<row>& rows, const std::string& prefix, const std::string& script)
{
    write_csv(rows, prefix + ".csv");
    const std::string command = fmt::format("python3 '{}' '{}.csv' '{}'", script, prefix, prefix);
    if (std::system(command.c_str()) != 0) {
        throw std::runtime_error("this failed: " + command);
    }
}

} // namespace ucxl::bench

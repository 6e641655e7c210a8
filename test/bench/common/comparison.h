// What `bench pack` and `bench transfer` have in common: options, files with the figures, goals.
#pragma once

#include "layout_case.h"
#include "row.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI
{
class App;
}

namespace ucxl::bench
{

struct comparison {
    effort how;
    std::size_t max_payload = SIZE_MAX;
    bool is_quick           = false;
    std::vector<std::string> only{};
    bool with_summary = false;
    std::string csv{}, json{}, plot{};

    void add_to(CLI::App& app, const std::string& what_quick_is);
    // Nothing: this case is not asked for.
    std::optional<layout_case> choose(const case_maker& of) const;
};

// Into the files that are asked for.
void write_files(const comparison& wanted, const std::vector<row>& rows);

// What main() returns after body(), whose exceptions are reported. A peer that ended is reported when its answer is
// missing.
int report_failure(const char* benchmark, const std::function<void()>& body);

// "WHAT >= LEAST: N of M rows", and the rows that miss it. figure(row): nothing where a row is not judged.
template <typename Row, typename Figure>
std::string judge_by(const std::vector<Row>& rows, std::string_view what, double least, Figure&& figure)
{
    std::string misses;
    unsigned judged = 0, missed = 0;
    for (const Row& one : rows) {
        if (const std::optional<double> ratio = figure(one)) {
            ++judged;
            if (*ratio < least) {
                ++missed;
                misses += fmt::format("    {:5.2f}  {}\n", *ratio, one.name());
            }
        }
    }
    return fmt::format("{} >= {}: {} of {} rows\n{}", what, least, judged - missed, judged, misses);
}

} // namespace ucxl::bench

#include "comparison.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <exception>

namespace ucxl::bench
{

void comparison::add_to(CLI::App& app, const std::string& what_quick_is)
{
    app.add_flag("--quick", is_quick, what_quick_is);
    app.add_option("--only", only, "layouts whose name holds this text; may be given several times")
        ->allow_extra_args(false);
    app.add_flag("--summary", with_summary, "after the tables: goals and how often they are met");
    app.add_option("--csv", csv, "write all figures into this file");
    app.add_option("--json", json, "write all figures into this file");
    app.add_option("--plot", plot, "draw tables into files whose names begin like this");
}

std::optional<layout_case> comparison::choose(const case_maker& of) const
{
    if (of.payload > max_payload && !of.always) {
        return std::nullopt;
    }
    layout_case made  = of.make();
    const bool chosen = only.empty() || std::ranges::any_of(only, [&](const std::string& text) {
                            return made.name.find(text) != std::string::npos;
                        });
    return chosen ? std::optional(std::move(made)) : std::nullopt;
}

void write_files(const comparison& wanted, const std::vector<row>& rows)
{
    if (!wanted.csv.empty()) {
        write_csv(rows, wanted.csv);
    }
    if (!wanted.json.empty()) {
        write_json(rows, wanted.json);
    }
    if (!wanted.plot.empty()) {
        plot(rows, wanted.plot, PLOT_SCRIPT);
    }
}

int report_failure(const char* benchmark, const std::function<void()>& body)
{
    std::signal(SIGPIPE, SIG_IGN);
    try {
        body();
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench {}: {}\n", benchmark, error.what());
        return 1;
    }
    return 0;
}

} // namespace ucxl::bench

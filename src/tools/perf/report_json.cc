#include "report_json.h"

#include "tools/common/value_of.h"
#include "tools/common/version.h"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace ucxl::perf
{

using ordered_json = nlohmann::ordered_json;

struct json_reporter::document {
    ordered_json root;
    ordered_json run;
};

namespace
{

ordered_json describe(const ucx_layout::layout& layout)
{
    const ucp_layout_attr_t attr = tools::attributes(layout);
    return {{"text", layout_text(layout)},
            {"packed_length", attr.packed_length},
            {"blocks", attr.num_blocks},
            {"min_block_length", attr.min_block_length},
            {"max_block_length", attr.max_block_length},
            {"extent", attr.extent},
            {"hash", fmt::format("{:016x}", attr.hash)}};
}

ordered_json describe(const report_row& row, const report_row& first, double rank, double size)
{
    const double average = row.statistics.average();
    const double median  = row.statistics.median_of_rounds();
    ordered_json result  = {{"method", row.name},
                            {"iterations", row.statistics.iterations()},
                            {"rounds", row.statistics.rounds()},
                            {"percentile_us", row.statistics.percentile(rank) * 1e6},
                            {"average_us", average * 1e6},
                            {"median_us", median * 1e6},
                            {"average_bytes_per_s", size / average},
                            {"median_bytes_per_s", size / median},
                            {"average_rate", 1 / average},
                            {"median_rate", 1 / median},
                            {"speed_against_first", row.statistics.speed_against(first.statistics)},
                            {"validated_messages", row.validated}};
    if (row.copied) {
        result["copied_bytes"] = *row.copied;
    }
    return result;
}

} // namespace

json_reporter::json_reporter(double rank) : _document(std::make_unique<document>()), _rank(rank)
{
    _document->root         = {{"version", tools::version_text("ucx_layout_perftest")}, {"percentile_rank", rank}};
    _document->root["runs"] = ordered_json::array();
}

json_reporter::~json_reporter() = default;

void json_reporter::begin(const settings& settings, const layout_pair& layouts)
{
    _document->run            = {{"test", info_of(settings.test).name},
                                 {"message_size", settings.operation_bytes()},
                                 {"local_memory", info_of(settings.memory.local).name},
                                 {"remote_memory", info_of(settings.memory.remote).name},
                                 {"outstanding", settings.outstanding},
                                 {"send_layout", describe(layouts.send)},
                                 {"receive_layout", describe(layouts.receive)}};
    _document->run["results"] = ordered_json::array();
    _document->run["skipped"] = ordered_json::array();
}

void json_reporter::skipped(const skipped_method& method)
{
    _document->root["runs"].back()["skipped"].push_back({{"method", method.name}, {"reason", method.reason}});
}

void json_reporter::finish(const settings& settings, const std::vector<report_row>& rows)
{
    for (const report_row& row : rows) {
        _document->run["results"].push_back(
            describe(row, rows.front(), _rank, static_cast<double>(settings.operation_bytes())));
    }
    _document->root["runs"].push_back(std::move(_document->run));
}

void json_reporter::end()
{
    std::puts(_document->root.dump(2).c_str());
}

} // namespace ucxl::perf

#include "report.h"

#include "report_json.h"
#include "tools/common/output.h"
#include "tools/common/print_layout.h"
#include "tools/common/value_of.h"

#include <cstdio>
#include <fmt/format.h>

namespace ucxl::perf
{

namespace
{

constexpr double microsecond = 1e-6;
constexpr double megabyte    = 1024 * 1024; // as in ucx_perftest

// Flushes, so that results appear at once, also through a pipe.
void print_line(const std::string& line)
{
    std::puts(line.c_str());
    tools::flush_output();
}

std::string words_text(const settings& settings)
{
    const std::uint64_t words = settings.message_size / settings.word_bytes;
    return words == 1 ? "1 word" : fmt::format("{} words", words);
}

class table_reporter : public reporter
{
public:
    table_reporter(double rank, bool final_only) : _rank(rank), _final_only(final_only) {}

    void begin(const settings& settings, const layout_pair& layouts) override
    {
        const test_info& test = info_of(settings.test);
        const auto field      = [](const char* name, const std::string& value) {
            return fmt::format("| {:14}{:105} |", name, value);
        };
        _message_size = settings.operation_bytes();
        _name         = test.name;
        if (!_final_only) {
            print_line(fmt::format("+{:-^121}+", ""));
            print_line(field("Test:", fmt::format("{}: {}", test.name, test.description)));
            if (!settings.is_atomic()) {
                print_line(field("Send layout:", layout_text(layouts.send)));
                print_line(field("", layout_summary(layouts.send)));
            }
            print_line(field(settings.is_atomic() ? "Words in:" : "Recv layout:", layout_text(layouts.receive)));
            print_line(field("", layout_summary(layouts.receive)));
            if (settings.memory.local != memory_kind::host || settings.memory.remote != memory_kind::host) {
                print_line(field("Memory:", fmt::format("{} (local), {} (remote)", info_of(settings.memory.local).name,
                                                        info_of(settings.memory.remote).name)));
            }
            print_line(field("Message size:", fmt::format("{}", settings.operation_bytes())));
            print_line(field("Outstanding:", fmt::format("{}", settings.outstanding)));
        }
        const std::string first =
            settings.chosen.empty() ? "first" : std::string(info_of(settings.chosen.front()).name);
        print_line(rule);
        print_line(fmt::format("| {:^12} | {:^12} | {:^28} | {:^20} | {:^22} | {:^9} |", "", "",
                               fmt::format("{} (usec)", test.time_column), "bandwidth (MB/s)", "rate (msg/s)",
                               "speed /"));
        print_line(fmt::format("| {:^12} | {:^12} | {:^8} | {:^8} | {:^6} | {:^9}| {:^9} | {:^10}| {:^9} | {:^9} |",
                               "method", "# messages", fmt::format("{:.1f}%ile", _rank), "average", "median", "average",
                               "median", "average", "median", first));
        print_line(rule);
    }

    void skipped(const skipped_method& method) override
    {
        print_line(fmt::format("{:>14}   not possible: {}", method.name, method.reason));
    }

    void progress(const report_row& row) override
    {
        if (!_final_only) {
            print_line(line(fmt::format("[{}]", row.name), row.statistics, ""));
        }
    }

    void finish(const settings& settings, const std::vector<report_row>& rows) override
    {
        if (!_final_only) {
            print_line(rule);
        }
        for (const report_row& row : rows) {
            const std::string ratio   = fmt::format("{:>9.2f}", row.statistics.speed_against(rows.front().statistics));
            const std::string checked = row.validated != 0 ? "  verified" : "";
            print_line(line(row.name, row.statistics, ratio + checked));
        }
        for (const report_row& row : rows) {
            if (settings.is_atomic() && row.validated != 0) {
                print_line(fmt::format("{:>14}   final values right: {} in {} operations", row.name,
                                       words_text(settings), row.validated));
            }
            if (row.copied) {
                print_line(copied_text(row.name, *row.copied));
            }
        }
    }

private:
    static constexpr const char* rule =
        "+--------------+--------------+------------------------------+----------------------+"
        "------------------------+-----------+";

    std::string line(const std::string& name, const method_statistics& statistics, const std::string& ratio) const
    {
        const double average = statistics.average();
        const double median  = statistics.median_of_rounds();
        const auto size      = static_cast<double>(_message_size) / megabyte;
        return fmt::format("{:>14} {:>14} {:>10.3f} {:>10.3f} {:>8.3f} {:>11.2f} {:>10.2f} {:>11.0f} {:>11.0f} {}",
                           name, statistics.iterations(), statistics.percentile(_rank) / microsecond,
                           average / microsecond, median / microsecond, size / average, size / median, 1 / average,
                           1 / median, ratio);
    }

    double _rank;
    bool _final_only;
    std::uint64_t _message_size = 0;
    std::string _name;
};

class csv_reporter : public reporter
{
public:
    explicit csv_reporter(double rank) : _rank(rank) {}

    void begin(const settings& settings, const layout_pair& /*layouts*/) override
    {
        _settings = settings;
        if (!_started) {
            print_line(fmt::format(
                "test,method,size,iterations,{:.1f}_percentile_lat,avg_lat,median_lat,avg_bw,median_bw,avg_mr,"
                "median_mr,speed,validated",
                _rank));
        }
        _started = true;
    }

    void skipped(const skipped_method& method) override
    {
        fmt::print(stderr, "{}: not possible: {}\n", method.name, method.reason);
    }

    void progress(const report_row& /*row*/) override {}

    void finish(const settings& /*settings*/, const std::vector<report_row>& rows) override
    {
        for (const report_row& row : rows) {
            const double average = row.statistics.average();
            const double median  = row.statistics.median_of_rounds();
            const auto size      = static_cast<double>(_settings.operation_bytes()) / megabyte;
            print_line(fmt::format("{},{},{},{},{:.3f},{:.3f},{:.3f},{:.2f},{:.2f},{:.0f},{:.0f},{:.3f},{}",
                                   info_of(_settings.test).name, row.name, _settings.operation_bytes(),
                                   row.statistics.iterations(), row.statistics.percentile(_rank) / microsecond,
                                   average / microsecond, median / microsecond, size / average, size / median,
                                   1 / average, 1 / median, row.statistics.speed_against(rows.front().statistics),
                                   row.validated));
        }
    }

private:
    double _rank;
    bool _started = false;
    settings _settings;
};

} // namespace

std::unique_ptr<reporter> make_reporter(const options& options)
{
    switch (options.format) {
    case output_format::table:
        return std::make_unique<table_reporter>(options.rank, options.final_only);
    case output_format::csv:
        return std::make_unique<csv_reporter>(options.rank);
    case output_format::json:
        return std::make_unique<json_reporter>(options.rank);
    }
    tools::give_up("unknown output format");
}

std::string copied_text(const std::string& method, std::uint64_t bytes)
{
    return fmt::format("{:>14}   bytes copied by the CPU of this side: {}", method, bytes);
}

std::string layout_text(const ucx_layout::layout& layout)
{
    constexpr std::size_t longest = 100;
    const std::string result      = tools::print_layout(layout, UCP_LAYOUT_PRINT_TEXT);
    return result.size() <= longest ? result : result.substr(0, longest - 3) + "...";
}

std::string layout_summary(const ucx_layout::layout& layout)
{
    const ucp_layout_attr_t attr = tools::attributes(layout);
    const std::string blocks     = attr.num_blocks == 1 ? "1 block" : fmt::format("{} blocks", attr.num_blocks);
    const std::string lengths    = attr.min_block_length == attr.max_block_length
                                       ? fmt::format("{}", attr.max_block_length)
                                       : fmt::format("{} to {}", attr.min_block_length, attr.max_block_length);
    return fmt::format("{} bytes in {} of {} bytes, extent {}", attr.packed_length, blocks, lengths, attr.extent);
}

} // namespace ucxl::perf

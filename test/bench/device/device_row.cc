#include "device_row.h"

#include "bench/common/comparison.h"

#include <fmt/format.h>

#include <algorithm>

namespace ucxl::bench
{

namespace
{

// A count of one transfer. It is whole, unless something happened once in the transfers that were counted.
std::string count_text(double count)
{
    return fmt::format("{:.{}f}", count, count == static_cast<double>(static_cast<long long>(count)) ? 0 : 2);
}

std::string share_text(const device_row& row, const device_cost& by)
{
    return by.bytes_copied == 0 ? "0" : fmt::format("{:.2f}", by.bytes_copied / static_cast<double>(row.length));
}

std::string head(const device_row& first)
{
    std::string text = fmt::format("{:<15} {:>8} {:>7} {:>6}", first.operation, "packed", "blocks", "auto");
    for (const char* figure : {"WQEs", "copied"}) {
        for (const device_cost& by : first.methods) {
            text += fmt::format(" {:>14}", fmt::format("{} {}", by.method.substr(0, by.method.find('-')), figure));
        }
    }
    return text + fmt::format(" {:>8} {:>5}\n", "commands", "UMR");
}

std::string line(const device_row& row)
{
    std::string text = fmt::format("{:<15} {:>8} {:>7} {:>6}", row.pattern, size_text(row.length), row.num_blocks,
                                   row.has_keys_by_cost ? "key" : "copy");
    const auto add   = [&](auto&& figure) {
        for (const device_cost& by : row.methods) {
            text += fmt::format(" {:>14}", figure(by));
        }
    };
    add([](const device_cost& by) { return count_text(by.work_requests); });
    add([&](const device_cost& by) { return share_text(row, by); });
    const device_cost& ours = row.methods[0];
    return text + fmt::format(" {:>8} {:>5}\n", count_text(ours.commands), count_text(ours.key_bindings));
}

} // namespace

std::string device_table(const device_rows& rows, const std::string& operation)
{
    std::string text;
    for (const device_row& row : rows) {
        if (row.operation == operation) {
            text += (text.empty() ? head(row) : "") + line(row);
        }
    }
    return text;
}

std::string device_summary(const device_rows& rows)
{
    const auto work_of = [](const device_row& row) { return row.methods[0].work_requests; };
    const auto most    = std::ranges::max_element(rows, {}, work_of);
    const auto copied  = [](const device_row& row) { return row.methods[0].bytes_copied != 0; };
    return fmt::format("device: {} rows, {} without a byte copied by a CPU, most work requests {}", rows.size(),
                       rows.size() - static_cast<std::size_t>(std::ranges::count_if(rows, copied)),
                       most == rows.end() ? "0 (none)" : count_text(work_of(*most)) + " (" + most->name() + ")");
}

std::string judge(const device_rows& rows)
{
    return judge_by(rows, "rows without a command or a key binding in the steady state", 1, [](const device_row& row) {
        return std::optional(row.methods[0].commands + row.methods[0].key_bindings == 0 ? 1.0 : 0.0);
    });
}

std::string device_csv(const device_rows& rows)
{
    std::string text = "pattern,operation,packed,blocks,auto,method,work_requests,key_bindings,commands,bytes_copied\n";
    for (const device_row& row : rows) {
        for (const device_cost& by : row.methods) {
            text += fmt::format("{},{},{},{},{},{},{},{},{},{:.0f}\n", row.pattern, row.operation, row.length,
                                row.num_blocks, row.has_keys_by_cost ? "key" : "copy", by.method,
                                count_text(by.work_requests), count_text(by.key_bindings), count_text(by.commands),
                                by.bytes_copied);
        }
    }
    return text;
}

} // namespace ucxl::bench

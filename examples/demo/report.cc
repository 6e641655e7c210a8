#include "report.h"

#include <cstdio>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <ucp/api/ucp.h>

namespace examples
{

static double gigabytes_a_second(std::size_t bytes, double time_s)
{
    return time_s > 0 ? static_cast<double>(bytes) / time_s * 1e-9 : 0;
}

static double ratio(const row& result)
{
    return result.windows_s > 0 ? result.packed_s / result.windows_s : 0;
}

void print_transport(const transport& used)
{
    if (used.is_device()) {
        fmt::print("\nhardware keys of {}{}", used.device,
                   used.is_software ? ", a software device: its times are not those of a card" : "");
    }
    fmt::print("\n{}: UCX {}, {}, both ends windows; half round trip of tag messages, medians\n", used.name,
               ucp_get_version_string(), used.ucx_tls.empty() ? "UCX_TLS not set" : "UCX_TLS=" + used.ucx_tls);
    fmt::print("{:<16} {:>9} {:>7} {:>11} {:>13} {:>13} {:>7} {:>9} {:>9}\n", "pattern", "bytes", "blocks",
               "windows us", "windows GB/s", "packing GB/s", "ratio", "put GB/s", "verified");
}

void print_row(const row& result, const pattern& pattern)
{
    fmt::print("{:<16} {:>9} {:>7} {:>11.2f} {:>13.2f} {:>13.2f} {:>7.2f} {:>9.2f} {:>9}\n", pattern.name, result.bytes,
               result.blocks, result.windows_s * 1e6, gigabytes_a_second(result.bytes, result.windows_s),
               gigabytes_a_second(result.bytes, result.packed_s), ratio(result),
               gigabytes_a_second(result.bytes, result.put_s), result.verified ? "yes" : "no");
    if (!result.verified) {
        fmt::print("    {}\n", result.problem);
    }
    std::fflush(stdout);
}

void print_json(const pattern_list& patterns, const std::vector<transport>& transports, const std::vector<row>& rows,
                std::size_t verified)
{
    nlohmann::ordered_json all;
    all["ucx_version"] = ucp_get_version_string();
    all["patterns"]    = patterns.size();
    all["verified"]    = verified;
    for (const row& result : rows) {
        const transport& used = transports[result.transport];
        all["rows"].push_back({{"pattern", patterns[result.pattern].name},
                               {"about", patterns[result.pattern].description},
                               {"transport", used.name},
                               {"ucx_tls", used.ucx_tls},
                               {"bytes", result.bytes},
                               {"blocks", result.blocks},
                               {"windows_us", result.windows_s * 1e6},
                               {"packing_us", result.packed_s * 1e6},
                               {"put_us", result.put_s * 1e6},
                               {"windows_us_min", result.windows_min_s * 1e6},
                               {"packing_us_min", result.packed_min_s * 1e6},
                               {"put_us_min", result.put_min_s * 1e6},
                               {"bytes_copied_by_cpu", result.copied_bytes},
                               {"ratio", ratio(result)},
                               {"verified", result.verified},
                               {"why", result.problem}});
    }
    fmt::print("{}\n", all.dump(2));
}

} // namespace examples

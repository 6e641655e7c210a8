#include "report.h"

#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace examples
{

using json = nlohmann::ordered_json;

void print_head(const launcher_options& options)
{
    const exchange_plan& plan = options.roles.plan;
    fmt::print("{0} hosts on {1}, {0} DPU processes on {2}, {3} rounds, messages of 0 to {4} bytes\n", plan.hosts,
               options.host_device, options.dpu_device, options.roles.rounds, plan.max_bytes);
    std::fflush(stdout);
}

static json parsed(const std::vector<std::string>& texts)
{
    json all = json::array();
    for (const std::string& text : texts) {
        all.push_back(json::parse(text));
    }
    return all;
}

static json sum_of(const json& processes)
{
    json sum = json::object();
    for (const json& process : processes) {
        for (const auto& [name, value] : process.items()) {
            if (!sum.contains(name)) {
                sum[name] = value;
            } else if (value.is_number_float()) {
                sum[name] = sum[name].get<double>() + value.get<double>();
            } else {
                sum[name] = sum[name].get<std::uint64_t>() + value.get<std::uint64_t>();
            }
        }
    }
    return sum;
}

static double per(const json& sum, const char* time, const char* count)
{
    const auto times = sum[count].get<std::uint64_t>();
    return times == 0 ? 0 : sum[time].get<double>() / static_cast<double>(times);
}

void print_summary(const launcher_options& options, const exchange_result& result)
{
    const json host     = sum_of(parsed(result.hosts));
    const json dpu      = sum_of(parsed(result.dpus));
    const double rounds = options.roles.rounds;
    fmt::print("hosts: {} buffers exported, {} of them windows; {:.1f} us each to map and export, {:.1f} us to unmap\n",
               host["exports"].get<std::uint64_t>(), host["windows"].get<std::uint64_t>(),
               per(host, "export_us", "exports"), per(host, "unmap_us", "exports"));
    fmt::print("DPU processes: {} imports by {} aliases, {:.1f} us each; {} gets and {} puts of {} bytes\n",
               dpu["imports"].get<std::uint64_t>(), dpu["aliases"].get<std::uint64_t>(),
               per(dpu, "import_us", "imports"), dpu["gets"].get<std::uint64_t>(), dpu["puts"].get<std::uint64_t>(),
               dpu["get_bytes"].get<std::uint64_t>() + dpu["put_bytes"].get<std::uint64_t>());
    fmt::print(
        "the hosts were stopped while anything was moved: {:.1f} ms per round, {} looks, no processor time used\n",
        result.stopped_ms / rounds, result.looks);
    fmt::print("every byte is right\n");
}

std::string as_json(const launcher_options& options, const exchange_result& result)
{
    const exchange_plan& plan = options.roles.plan;
    const json hosts          = parsed(result.hosts);
    const json dpus           = parsed(result.dpus);
    const json all            = {{"hosts", plan.hosts},
                                 {"rounds", options.roles.rounds},
                                 {"max_bytes", plan.max_bytes},
                                 {"seed", plan.seed},
                                 {"stopped_ms", result.stopped_ms},
                                 {"looks", result.looks},
                                 {"repeated_stops", result.repeated_stops},
                                 {"host", hosts},
                                 {"dpu", dpus},
                                 {"total", {{"host", sum_of(hosts)}, {"dpu", sum_of(dpus)}}}};
    return all.dump();
}

void print_or_write(const std::string& line, const std::string& path)
{
    if (path.empty()) {
        fmt::print("{}\n", line);
        return;
    }
    std::ofstream file(path);
    if (!(file << line << std::endl)) {
        throw std::runtime_error("the result cannot be written to " + path);
    }
}

} // namespace examples

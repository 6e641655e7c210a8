// `contrib/dev bench keys [--json]`: what layout keys cost the CPU and the device, beside the same transfer posted as
// one work request per block and as lists of scatter/gather elements.
//
// CPU time only, of the thread that does it: requests are built and written into the send queue, and then taken back
// (ibv_wr_abort) before the doorbell, so no time of a device is in it; the rows that say so are executed, on the
// software device unless UCXL_TEST_DEVICE names a real one, and include what that costs. Figures are medians of
// samples. What the device did is counted by the software device.
#include "key_costs.h"
#include "key_moves.h"
#include "support/software_device.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

namespace
{

using ucxl::bench::table;

std::string cell(const table& value)
{
    if (value.is_string()) {
        return value.get<std::string>();
    }
    if (value.is_number_float()) {
        const double number = value.get<double>();
        return number >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
    }
    return value.dump();
}

void print_table(const std::string& title, const table& rows)
{
    fmt::print("{}\n", title);
    std::string head;
    for (const auto& [name, value] : rows.at(0).items()) {
        head += fmt::format(" {:>{}}", name, value.is_string() ? 26 : std::max<std::size_t>(name.size(), 12));
    }
    fmt::print("{}\n", head);
    for (const table& row : rows) {
        std::string line;
        for (const auto& [name, value] : row.items()) {
            line +=
                fmt::format(" {:>{}}", cell(value), value.is_string() ? 26 : std::max<std::size_t>(name.size(), 12));
        }
        fmt::print("{}\n", line);
    }
    fmt::print("\n");
}

void measure(bool as_json)
{
    ucxl::test::verbs_pair pair;
    table all;
    all["one bind request, built and written to the send queue: ns of CPU per bind"] = ucxl::bench::bind_costs(pair);
    all["a region set by the C API, device included"]                                = ucxl::bench::set_costs(pair);
    all["112000 blocks of 2048 bytes (a KV cache) as one write: CPU of posting the data"] =
        ucxl::bench::post_costs(pair);
    all["the same transfer made: what the device counted"] =
        ucxl::bench::counted_moves(std::filesystem::read_symlink("/proc/self/exe").c_str());
    if (as_json) {
        fmt::print("{}\n", all.dump(2));
        return;
    }
    for (const auto& [title, rows] : all.items()) {
        print_table(title, rows);
    }
}

} // namespace

int main(int argc, char** argv)
{
    ucxl::test::use_software_device(argv, SOFTHCA_LIBRARY);
    CLI::App app("Costs of layout keys", "bench_keys");
    bool as_json = false;
    std::string method;
    app.add_flag("--json", as_json, "print JSON");
    app.add_option("--move", method, "make the transfer once by this method, to be counted");
    CLI11_PARSE(app, argc, argv);
    try {
        if (!method.empty()) {
            return ucxl::bench::move_by(method) ? 0 : 2;
        }
        measure(as_json);
    } catch (const std::runtime_error& failed) {
        fmt::print(stderr, "bench: {}\n", failed.what());
        return 1;
    }
}

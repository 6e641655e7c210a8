// halo3d: heat spreads in a box of cells. Several processes compute it and exchange the faces of their blocks through
// windows in each step. The result must equal that of one process bit for bit.
#include "examples/common/shared.h"
#include "exchange.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fmt/core.h>
#include <span>

using namespace examples;

namespace
{

struct options {
    unsigned processes = 4;
    std::size_t size   = 96;
    unsigned steps     = 100;
    std::string method = "tag";
    std::string tls;
    unsigned limit_s = 300;

    index3 cells() const { return {size, size, size}; }
};

struct time_split {
    double compute_s, exchange_s;
};

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

exchange_ptr make_exchange(const options& wanted, team& all, ucx_link& link, const grid& cut, field_pair& fields)
{
    const std::vector<side_of_block> sides = sides_of(all.rank(), cut, fields[0]);
    if (wanted.method == "pack") {
        return make_pack_exchange(link, sides, fields);
    }
    return wanted.method == "put" ? make_put_exchange(all, link, sides, fields)
                                  : make_tag_exchange(link, sides, fields);
}

// Copies the inner cells of a block to their place in the whole box.
void copy_out(field& from, const box_block& part, const grid& cut, std::span<double> box)
{
    for (std::size_t z = 0; z < part.cells[2]; ++z) {
        for (std::size_t y = 0; y < part.cells[1]; ++y) {
            const std::size_t row = (part.first[2] + z) * cut.cells()[1] + part.first[1] + y;
            std::memcpy(&box[row * cut.cells()[0] + part.first[0]], from.data() + from.index(1, y + 1, z + 1),
                        part.cells[0] * sizeof(double));
        }
    }
}

void compute_part(team& all, const options& wanted, const grid& cut, std::span<double> box, std::span<time_split> times)
{
    const box_block part = cut.block_of(all.rank());
    field_pair fields{field(part.cells), field(part.cells)};
    fields[0].start(part);
    const auto link = ucx_link::create(all);
    {
        const exchange_ptr halo = make_exchange(wanted, all, *link, cut, fields);
        all.barrier();
        time_split& spent = times[all.rank()];
        for (unsigned step = 0; step < wanted.steps; ++step) {
            auto begin = std::chrono::steady_clock::now();
            halo->exchange(step % 2);
            spent.exchange_s += seconds_since(begin);
            begin = std::chrono::steady_clock::now();
            fields[1 - step % 2].step(fields[step % 2]);
            spent.compute_s += seconds_since(begin);
        }
        all.barrier();
    }
    copy_out(fields[wanted.steps % 2], part, cut, box);
    link->close();
}

std::vector<double> compute_alone(const options& wanted)
{
    const grid whole(1, wanted.cells());
    const box_block all = whole.block_of(0);
    field_pair fields{field(all.cells), field(all.cells)};
    fields[0].start(all);
    for (unsigned step = 0; step < wanted.steps; ++step) {
        fields[1 - step % 2].step(fields[step % 2]);
    }
    std::vector<double> box(all.cells[0] * all.cells[1] * all.cells[2]);
    copy_out(fields[wanted.steps % 2], all, whole, box);
    return box;
}

bool print_verdict(std::span<const double> found, std::span<const double> expected, const index3& cells)
{
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
        // The bits, not the values: NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
        if (std::memcmp(&found[i], &expected[i], sizeof(double)) != 0) {
            first = wrong++ == 0 ? i : first;
        }
    }
    if (wrong == 0) {
        fmt::print("halo3d: equal to one process, bit for bit\n");
        return true;
    }
    fmt::print("halo3d: {} cells differ from one process, the first at ({}, {}, {})\n", wrong, first % cells[0],
               first / cells[0] % cells[1], first / (cells[0] * cells[1]));
    return false;
}

int run(const options& wanted)
{
    const grid cut(wanted.processes, wanted.cells());
    const std::vector<double> expected = compute_alone(wanted);
    if (!wanted.tls.empty()) {
        setenv("UCX_TLS", wanted.tls.c_str(), 1);
    }
    const auto box   = make_shared_array<double>(expected.size());
    const auto times = make_shared_array<time_split>(wanted.processes);
    fmt::print("halo3d: {0}^3 cells, {1} steps, {2} processes as {3} x {4} x {5}, {6}\n", wanted.size, wanted.steps,
               wanted.processes, cut.processes()[0], cut.processes()[1], cut.processes()[2],
               wanted.method == "pack" ? "packing loops" : "windows, " + wanted.method);
    const unsigned failed = run_team(wanted.processes, std::chrono::seconds(wanted.limit_s), [&](team& all) {
        compute_part(all, wanted, cut, {box.get(), expected.size()}, {times.get(), wanted.processes});
    });
    if (failed > 0) {
        fmt::print("halo3d: {} of {} processes failed\n", failed, wanted.processes);
        return 1;
    }
    time_split mean{};
    for (unsigned rank = 0; rank < wanted.processes; ++rank) {
        mean.compute_s += times[rank].compute_s / wanted.processes;
        mean.exchange_s += times[rank].exchange_s / wanted.processes;
    }
    fmt::print("compute {:.1f} ms, exchange {:.1f} ms (mean of the processes, waiting for each other included)\n",
               mean.compute_s * 1e3, mean.exchange_s * 1e3);
    return print_verdict({box.get(), expected.size()}, expected, wanted.cells()) ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app("Heat in a box, computed by several processes that exchange faces through windows.", "halo3d");
    app.add_option("-n,--processes", wanted.processes, "processes")->check(CLI::Range(1, 64))->capture_default_str();
    app.add_option("--size", wanted.size, "cells in every direction")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--steps", wanted.steps, "time steps")->capture_default_str();
    app.add_option("--method", wanted.method, "tag or put (windows), or pack (packing loops, for comparison)")
        ->check(CLI::IsMember({"tag", "put", "pack"}))
        ->capture_default_str();
    app.add_option("--tls", wanted.tls, "value for UCX_TLS; name lay_copy in it for windows (default: as it is)");
    app.add_option("--time-limit", wanted.limit_s, "seconds until it is given up")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        restart_without_ucx_thread(argv);
        return run(wanted);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "halo3d: {}\n", failure.what());
        return 1;
    }
}

// `contrib/dev bench pack`: packing and unpacking by plans against MPI libraries, hand loops, and the limits memcpy and
// streaming stores set, measured in turn on the same memory. All results are compared first.
#include "bench/common/comparison.h"
#include "bench/common/hand_loops.h"
#include "bench/common/shared_memory.h"
#include "bench/common/tree_layout.h"
#include "bench/common/worker.h"
#include "pack_row.h"
#include "support/must.h"

#include "ucs/pack/kernels.h"
#include "ucs/pack/pack_plan.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace ucxl::bench
{

namespace
{

// One way to move a case: fn(direction, to, from).
struct mover {
    std::string name;
    std::function<void(way direction, std::byte* to, std::byte* from)> move;
};

struct peer {
    std::string name;
    std::unique_ptr<worker> process;
};

// The MPI libraries whose programs were built.
std::vector<peer> start_peers(const shared_memory& memory)
{
    std::vector<peer> made;
    for (const std::string& name : pack_peers) {
        const std::string program = BENCH_FOLDER "/bench_mpi_pack_" + name;
        if (access(program.c_str(), X_OK) == 0) {
            made.push_back({name, std::make_unique<worker>(std::vector{program, memory.path()})});
        } else {
            fmt::print(stderr, "bench pack: without {}: there is no {}\n", name, program);
        }
    }
    return made;
}

// CBLAS, as far as it is used here.
using omatcopy = void (*)(int order, int transpose, int rows, int columns, double factor, const double* from,
                          int from_pitch, double* to, int to_pitch);

omatcopy find_omatcopy()
{
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    return library == nullptr ? nullptr : reinterpret_cast<omatcopy>(dlsym(library, "cblas_domatcopy"));
}

mover transposing(omatcopy call, const layout_case& of)
{
    const int rows = static_cast<int>(of.rows), columns = static_cast<int>(of.columns),
              pitch = static_cast<int>(of.pitch / 8);
    return {by_blas, [=](way direction, std::byte* to, std::byte* from) {
                constexpr int row_major = 101, transposed = 112;
                const bool packs = direction == way::pack;
                call(row_major, transposed, packs ? rows : columns, packs ? columns : rows, 1,
                     reinterpret_cast<const double*>(from), packs ? pitch : rows, reinterpret_cast<double*>(to),
                     packs ? rows : pitch);
            }};
}

std::vector<mover> movers_of(const layout_case& of)
{
    const pack_plan_ptr plan = test::must(pack_plan::compile(layout_of(*of.type)));
    const auto by_loop       = [](const char* name, const hand_loop& loop) {
        return mover{name, [loop](way direction, std::byte* to, std::byte* from) {
                         (direction == way::pack ? loop.pack : loop.unpack)(to, from);
                     }};
    };
    std::vector<mover> all{{by_plan,
                            [plan](way direction, std::byte* to, std::byte* from) {
                                if (direction == way::pack) {
                                    plan->gather({&from, 1}, 0, plan->packed_length(), to);
                                } else {
                                    plan->scatter({&to, 1}, 0, plan->packed_length(), from);
                                }
                            }},
                           by_loop(by_hand, of.hand),
                           by_loop(by_rt, of.by_memcpy)};
    if (of.tuned) {
        all.push_back(by_loop(by_tuned, of.tuned));
    }
    static const omatcopy blas = find_omatcopy();
    if (of.columns > 1 && blas != nullptr) {
        all.push_back(transposing(blas, of));
    }
    return all;
}

std::string command(way direction, bool cold, std::size_t first, unsigned times)
{
    return fmt::format("{} {} {} {}", direction == way::pack ? "pack" : "unpack", cold ? "cold" : "hot", first, times);
}

// The limits: as many bytes, contiguous on both sides.
std::vector<contender> limits_of(const layout_case& of, std::byte* memory, way direction, bool cold)
{
    layout_case contiguous = of;
    contiguous.extent = contiguous.touched = contiguous.length;
    contiguous.shift                       = (of.length + 4095) / 4096 * 4096;
    contiguous.per                         = SIZE_MAX;
    const auto limit                       = [&](const char* name, auto&& copy) {
        const auto whole = [=, length = of.length](std::byte* to, const std::byte* from) { copy(to, from, length); };
        return contender{name, [=, next = std::size_t{0}](unsigned times) mutable {
                             next += times;
                             return arena(memory, contiguous, cold).seconds(direction, next - times, times, whole);
                         }};
    };
    return {limit(by_memcpy,
                  [](std::byte* to, const std::byte* from, std::size_t length) { std::memcpy(to, from, length); }),
            limit(by_streaming, copy_streaming)};
}

pack_row measure_row(const comparison& wanted, const layout_case& of, std::byte* memory, std::vector<peer>& peers,
                     way direction, bool cold)
{
    std::vector<contender> contenders;
    for (const mover& one : movers_of(of)) {
        contenders.push_back({one.name, [=, &of, next = std::size_t{0}](unsigned times) mutable {
                                  next += times;
                                  return arena(memory, of, cold)
                                      .seconds(direction, next - times, times,
                                               [&](std::byte* to, std::byte* from) { one.move(direction, to, from); });
                              }});
    }
    for (peer& one : peers) {
        contenders.push_back({one.name, [=, &one, next = std::size_t{0}](unsigned times) mutable {
                                  next += times;
                                  return one.process->ask(command(direction, cold, next - times, times));
                              }});
    }
    std::ranges::move(limits_of(of, memory, direction, cold), std::back_inserter(contenders));
    return {{of.name, of.length, of.num_blocks, cold ? "cold" : "hot", direction == way::pack ? "pack" : "unpack",
             alternate(wanted.how, contenders)},
            of.judged_as,
            cold};
}

void fill(std::byte* bytes, std::size_t length)
{
    for (std::size_t i = 0; i < length; ++i) {
        bytes[i] = static_cast<std::byte>(i * 7 + i / 255);
    }
}

// The packed bytes of a memory, number by number.
std::vector<std::byte> packed_by_walking(const layout_case& of, const std::byte* memory)
{
    std::vector<std::byte> made;
    made.reserve(of.length);
    walk(*of.type, 0, [&](std::int64_t offset, std::size_t length) {
        made.insert(made.end(), memory + offset, memory + offset + static_cast<std::int64_t>(length));
    });
    return made;
}

void expect(bool same, const layout_case& of, const std::string& who, const char* what)
{
    if (!same) {
        throw std::runtime_error(fmt::format("{}: {} {} something else", of.name, who, what));
    }
}

// fn moves the first instance of everything.
template <typename Fn>
void compare(const layout_case& of, std::byte* begin, const std::string& who, Fn&& fn)
{
    const arena at(begin, of, false);
    fill(at.memory, of.extent);
    std::memset(at.packed, 0, of.length);
    fn(way::pack);
    const std::vector<std::byte> expected = packed_by_walking(of, at.memory);
    expect(expected.size() == of.length && std::equal(expected.begin(), expected.end(), at.packed), of, who, "packs");

    std::memset(at.memory, 0, of.extent);
    fn(way::unpack);
    expect(packed_by_walking(of, at.memory) == expected, of, who, "unpacks");
    // Gaps are as they were.
    walk(*of.type, 0, [&](std::int64_t offset, std::size_t length) { std::memset(at.memory + offset, 0, length); });
    expect(of.extent == 0 || (at.memory[0] == std::byte{} && std::memcmp(at.memory, at.memory + 1, of.extent - 1) == 0),
           of, who, "writes into gaps");
}

void compare_all(const layout_case& of, std::byte* memory, std::vector<peer>& peers)
{
    for (const mover& one : movers_of(of)) {
        compare(of, memory, one.name, [&](way direction) {
            arena(memory, of, false).move(direction, 0, [&](std::byte* to, std::byte* from) {
                one.move(direction, to, from);
            });
        });
    }
    for (peer& one : peers) {
        compare(of, memory, one.name, [&](way direction) { one.process->ask(command(direction, false, 0, 0)); });
    }
}

std::vector<pack_row> measure_all(const comparison& wanted)
{
    const shared_memory memory(arena_length);
    std::vector<peer> peers = start_peers(memory);
    std::vector<pack_row> rows;
    const std::vector<case_maker> cases = pack_cases();
    fmt::print("rate of plans, and what part of the rate of others it is; R: of the faster MPI library\n");
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const std::optional<layout_case> chosen = wanted.choose(cases[i]);
        if (!chosen) {
            continue;
        }
        const layout_case& of = *chosen;
        for (peer& one : peers) {
            expect(one.process->ask(fmt::format("case {}", i)) == static_cast<double>(of.length), of, one.name, "has");
        }
        fmt::print(stderr, "{}, {} bytes\n", of.name, of.length);
        compare_all(of, memory.data(), peers);
        for (const bool cold : {false, true}) {
            for (const way direction : {way::pack, way::unpack}) {
                rows.push_back(measure_row(wanted, of, memory.data(), peers, direction, cold));
            }
        }
    }
    return rows;
}

void print_tables(const std::vector<pack_row>& rows)
{
    for (const bool cold : {false, true}) {
        fmt::print("\n{}\n{}\n", cold ? "cold: memory and packed bytes are in no cache" : "hot: the same bytes again",
                   table_head());
        for (const pack_row& row : rows) {
            if (row.cold == cold) {
                fmt::print("{}\n", table_line(row));
            }
        }
    }
}

void run(const comparison& wanted)
{
    const std::vector<pack_row> measured_rows = measure_all(wanted);
    const std::vector<row> rows(measured_rows.begin(), measured_rows.end());
    print_tables(measured_rows);
    write_files(wanted, rows);
    if (wanted.with_summary) {
        fmt::print("\nkernels: {}\n{}{}\n", best_kernels().name, judge(measured_rows), geomean(rows, pack_peers));
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    using namespace ucxl::bench;
    CLI::App app("packing and unpacking by plans, against MPI libraries, hand loops, memcpy and streaming stores");
    comparison wanted{.how = {.rounds = 15, .sample_time = 3e-3, .most_time = 0.6}};
    wanted.add_to(app, "under two minutes: coarser, payloads up to 2 MB");
    CLI11_PARSE(app, argc, argv);
    if (wanted.is_quick) {
        wanted.how         = {.rounds = 7, .sample_time = 1e-3, .most_time = 0.1};
        wanted.max_payload = std::size_t{2} << 20;
    }
    return report_failure("pack", [&] { run(wanted); });
}

#include "targets.h"

#include "ucs/pack/kernels.h"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace ucxl::bench
{

namespace
{

constexpr std::size_t memory_length = 1048576, packed_length = 65536;

struct cache_line {
    alignas(64) std::array<std::byte, 64> bytes{};
};

struct kernel_memory {
    std::vector<cache_line> strided_lines{memory_length / sizeof(cache_line)};
    std::vector<cache_line> packed_lines{packed_length / sizeof(cache_line)};

    std::byte* strided() { return strided_lines.front().bytes.data(); }
    std::byte* packed() { return packed_lines.front().bytes.data(); }
};

// What one library does with the memory, both ways, and how many bytes that are.
struct kernel_work {
    std::size_t bytes;
    std::function<void()> gather, scatter;
};

kernel_work run_work(const kernel_library& library, kernel_memory& memory, block_run run)
{
    const block_kernels& kernels = library.blocks(run);
    return {run.packed_length(), [=, &kernels, &memory] { kernels.gather(memory.packed(), memory.strided(), run); },
            [=, &kernels, &memory] { kernels.scatter(memory.strided(), memory.packed(), run); }};
}

kernel_work group_work(const kernel_library& library, kernel_memory& memory, std::array<std::uint64_t, 3> lengths)
{
    constexpr std::uint64_t count = 512, apart = 65536 + 256; // not at the same place of the cache
    const group_kernels& kernels = *library.group(lengths);
    const std::uint64_t cycle    = lengths[0] + lengths[1] + lengths[2];
    std::array<block_column, 3> columns;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        columns[i] = {memory.strided() + i * apart, static_cast<std::int64_t>(lengths[i])};
    }
    const auto step = static_cast<std::int64_t>(cycle);
    return {cycle * count, [=, &kernels, &memory] { kernels.gather(memory.packed(), step, columns.data(), count); },
            [=, &kernels, &memory] { kernels.scatter(columns.data(), memory.packed(), step, count); }};
}

kernel_work panel_work(const kernel_library& library, kernel_memory& memory, std::uint64_t rows, std::uint64_t count)
{
    const block_kernels& kernels = library.blocks({.length = 8});
    const block_panel panel{count, 2048 + 64, rows, 8, static_cast<std::int64_t>(count * 8)};
    return {rows * count * 8,
            [=, &kernels, &memory] { kernels.gather_panel(memory.packed(), memory.strided(), panel); },
            [=, &kernels, &memory] { kernels.scatter_panel(memory.strided(), memory.packed(), panel); }};
}

struct kernel_shape {
    std::string name;
    std::function<kernel_work(const kernel_library&, kernel_memory&)> work;
};

const std::vector<kernel_shape>& shapes()
{
    static const std::vector<kernel_shape> all{
        {"8 of 16 bytes", [](auto& library, auto& memory) { return run_work(library, memory, {8, 1024, 16}); }},
        {"12 of 16 bytes", [](auto& library, auto& memory) { return run_work(library, memory, {12, 1024, 16}); }},
        {"29 of 64 bytes", [](auto& library, auto& memory) { return run_work(library, memory, {29, 1024, 64}); }},
        {"1000 of 2000 bytes", [](auto& library, auto& memory) { return run_work(library, memory, {1000, 60, 2000}); }},
        {"3 arrays of 8 bytes", [](auto& library, auto& memory) { return group_work(library, memory, {8, 8, 8}); }},
        {"arrays of 12, 12, 8", [](auto& library, auto& memory) { return group_work(library, memory, {12, 12, 8}); }},
        {"16 matrix columns", [](auto& library, auto& memory) { return panel_work(library, memory, 16, 256); }},
    };
    return all;
}

} // namespace

void print_targets(const effort& how)
{
    const auto libraries = usable_kernels();
    kernel_memory memory;
    fmt::print("{:22}", "gather, scatter, GB/s");
    for (const kernel_library* library : libraries) {
        fmt::print(" {:>13}", library->name);
    }
    fmt::print("\n");
    for (const kernel_shape& shape : shapes()) {
        std::vector<std::function<void()>> actions;
        std::size_t bytes = 0;
        for (const kernel_library* library : libraries) {
            const kernel_work work = shape.work(*library, memory);
            actions.insert(actions.end(), {work.gather, work.scatter});
            bytes = work.bytes;
        }
        const std::vector<measured> times = alternate_calls(how, actions);
        const auto rate = [&](std::size_t i) { return static_cast<double>(bytes) / times[i].time * 1e-9; };
        fmt::print("{:22}", shape.name);
        for (std::size_t i = 0; i < libraries.size(); ++i) {
            fmt::print(" {:6.1f} {:6.1f}", rate(2 * i), rate(2 * i + 1));
        }
        fmt::print("\n");
        std::fflush(stdout);
    }
}

} // namespace ucxl::bench

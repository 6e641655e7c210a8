// `contrib/dev bench map`: what ucp_layout_map costs when the same layout over the same bases was mapped before, beside
// ucp_mem_map of as much plain memory that UCP has in its registration cache. The layouts are lists without any
// regularity, so nothing but their length makes them expensive. Nothing is read or written through the windows.
#include "bench/common/measure.h"
#include "support/must.h"
#include "support/ucp.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <ucp_layout.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace ucxl::bench
{

namespace
{

using test::check;
using test::check_ok;
using test::must;
using ucx_layout::layout;
using ucx_layout::window;

struct map_case {
    const char* name;
    unsigned num_blocks;
    unsigned num_bases; // 1, or one for each block
};

constexpr map_case cases[] = {
    {"a block of 64 bytes", 1, 1},
    {"list over one base", 100, 1},
    {"list over one base", 10'000, 1},
    {"list over one base", 100'000, 1},
    {"list over a base for each block", 100, 100},
    {"list over a base for each block", 10'000, 10'000},
    {"list over a base for each block", 65'536, 65'536},
};

// Handles that are released after the clock was read.
constexpr unsigned batch = 64;

double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// As an application that builds its list for every transfer.
layout make_list(const map_case& row)
{
    std::vector<ucp_layout_iov_t> parts(row.num_blocks);
    std::ptrdiff_t offset = 0;
    for (unsigned i = 0; i < row.num_blocks; ++i) {
        const unsigned irregular = i * 2654435761u >> 24;
        parts[i]                 = {row.num_bases == 1 ? 0 : i, offset, {64, nullptr}};
        offset += row.num_bases == 1 ? 64 + 8 * (irregular + 1) : 0;
    }
    return must(layout::concatenate(parts));
}

// Addresses only: the memory is never accessed.
class reserved_memory
{
public:
    explicit reserved_memory(std::size_t length)
        : _data(mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
          _length(length)
    {
        check(_data != MAP_FAILED, "mmap of {} bytes failed", length);
    }
    ~reserved_memory() { munmap(_data, _length); }
    reserved_memory(const reserved_memory&)            = delete;
    reserved_memory& operator=(const reserved_memory&) = delete;

    std::byte* data() const { return static_cast<std::byte*>(_data); }
    std::size_t length() const { return _length; }

private:
    void* _data;
    std::size_t _length;
};

// Seconds of so many calls of map(i), without the time of release(i).
template <typename Map, typename Release>
double in_batches(unsigned times, Map&& map, Release&& release)
{
    double seconds = 0;
    for (unsigned done = 0; done < times; done += batch) {
        const unsigned count = std::min(batch, times - done);
        const auto begin     = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < count; ++i) {
            map(i);
        }
        seconds += seconds_since(begin);
        for (unsigned i = 0; i < count; ++i) {
            release(i);
        }
    }
    return seconds;
}

double map_plain(ucp_context_h context, const reserved_memory& memory, unsigned times)
{
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = memory.data();
    params.length     = memory.length();
    std::array<ucp_mem_h, batch> handles;
    return in_batches(
        times, [&](unsigned i) { check_ok(ucp_mem_map(context, &params, &handles[i]), "ucp_mem_map"); },
        [&](unsigned i) { check_ok(ucp_mem_unmap(context, handles[i]), "ucp_mem_unmap"); });
}

double map_windows(ucp_context_h context, std::span<const layout> handles, std::span<void* const> bases, unsigned times)
{
    ucp_layout_map_params_t params{};
    params.field_mask = UCP_LAYOUT_MAP_PARAM_FIELD_LAYOUT | UCP_LAYOUT_MAP_PARAM_FIELD_BASES;
    params.bases      = bases.data();
    params.num_bases  = static_cast<std::uint32_t>(bases.size());
    std::array<ucp_layout_window_h, batch> windows;
    return in_batches(
        times,
        [&](unsigned i) {
            params.layout = handles[i % handles.size()].get();
            check_ok(ucp_layout_map(context, &params, &windows[i]), "ucp_layout_map");
        },
        [&](unsigned i) { check_ok(ucp_layout_unmap(windows[i]), "ucp_layout_unmap"); });
}

std::vector<layout> make_equal(const map_case& row, unsigned count)
{
    std::vector<layout> made;
    for (unsigned i = 0; i < count; ++i) {
        made.push_back(make_list(row));
    }
    return made;
}

void measure(const effort& how, ucp_context_h context, const map_case& row)
{
    const std::vector<layout> equal = make_equal(row, 8);
    const layout& first             = equal.front();
    const reserved_memory plain(64 * std::size_t{row.num_blocks});
    const reserved_memory memory(std::size_t{row.num_blocks} * (64 + 8 * 256));
    std::vector<void*> bases, other_bases;
    for (unsigned i = 0; i < row.num_bases; ++i) {
        bases.push_back(memory.data() + std::size_t{i} * 2048);
        other_bases.push_back(memory.data() + std::size_t{i} * 2048 + 64);
    }
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address    = plain.data();
    params.length     = plain.length();
    ucp_mem_h registered;
    check_ok(ucp_mem_map(context, &params, &registered), "ucp_mem_map");
    const window held = must(window::map(context, first, bases));
    for (const layout& each : equal) {
        check(must(window::map(context, each, bases)).address() == held.address(), "equal content, another window");
    }
    const std::vector<measured> results = alternate(
        how,
        {{"ucp_mem_map", [&](unsigned times) { return map_plain(context, plain, times); }},
         {"same", [&](unsigned times) { return map_windows(context, {&first, 1}, bases, times); }},
         {"equal", [&](unsigned times) { return map_windows(context, equal, bases, times); }},
         {"unused",
          [&](unsigned times) { return seconds_of(times, [&] { must(window::map(context, first, other_bases)); }); }},
         {"create", [&](unsigned times) { return seconds_of(times, [&] { make_list(row); }); }}});
    check_ok(ucp_mem_unmap(context, registered), "ucp_mem_unmap");
    fmt::print("{:32} {:7} {:12.0f} {:12.0f} {:12.0f} {:12.0f} {:12.1f}\n", row.name, row.num_blocks,
               results[0].time * 1e9, results[1].time * 1e9, results[2].time * 1e9, results[3].time * 1e9,
               results[4].time * 1e6);
    std::fflush(stdout);
}

void run(const effort& how)
{
    const test::context used;
    // UCP's handles of windows that nobody maps are kept while their context has a worker.
    const std::unique_ptr<ucp_worker, decltype(&ucp_worker_destroy)> worker(test::open_worker(used.get()),
                                                                            &ucp_worker_destroy);
    fmt::print("one call, median; mapped: somebody holds the window; other handle: the layout made 8 times, in turn;\n"
               "unused: nobody holds it, map and unmap; create: the layout made again while there is an equal one\n"
               "{:32} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12}\n{:32} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12}\n",
               "", "", "ucp_mem_map", "mapped", "mapped, other", "unused", "create", "layout", "blocks", "ns", "ns",
               "handle, ns", "ns", "us");
    for (const map_case& row : cases) {
        measure(how, used.get(), row);
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    CLI::App app("mapping what was mapped before, beside ucp_mem_map", "bench_map");
    ucxl::bench::effort how;
    bool is_quick = false;
    app.add_flag("--quick", is_quick, "under 10 s, coarser");
    CLI11_PARSE(app, argc, argv);
    if (is_quick) {
        how = {.rounds = 5, .sample_time = 1e-3, .most_time = 0.1};
    }
    try {
        ucxl::bench::run(how);
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench map: {}\n", error.what());
        return 1;
    }
    return 0;
}

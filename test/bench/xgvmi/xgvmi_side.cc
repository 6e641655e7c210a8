// One method of `contrib/dev bench xgvmi`: a buffer of the host is mapped, exported, imported by the DPU, and both let
// it go, by calls of stock UCP. Host and DPU are two contexts of this process, on two functions of one device. Prints
// a line of JSON for each length.
#include "bench/common/measure.h"
#include "bench/device/device_counts.h"
#include "support/ucp.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>

namespace ucxl::bench
{

namespace
{

using test::check;
using test::check_ok;

struct chosen_options {
    std::string buffers = "fresh"; // or "held": none is let go before the last; or "same": one, mapped again
    unsigned repeats    = 20;
    std::vector<std::uint64_t> lengths{16 << 10, 1 << 20, 64 << 20, 1 << 30};
};

enum step { map, pack, import, release_import, unmap, num_steps };
constexpr const char* step_names[] = {"map", "export", "import", "release_import", "unmap"};

// Microseconds.
struct spent {
    double us[num_steps] = {};

    template <typename Body>
    void add(step which, Body&& body)
    {
        us[which] += seconds_of(1, body) * 1e6;
    }
};

struct buffer {
    void* memory       = nullptr;
    ucp_mem_h host     = nullptr;
    ucp_mem_h imported = nullptr;
};

class cycle
{
public:
    cycle(ucp_context_h host, ucp_context_h dpu, std::uint64_t length, bool is_shared)
        : _host(host), _dpu(dpu), _length(length), _is_shared(is_shared)
    {
    }

    void begin(buffer& used, spent& total)
    {
        if (used.memory == nullptr) {
            used.memory =
                mmap(nullptr, _length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            check(used.memory != MAP_FAILED, "mmap of {} bytes", _length);
        }
        total.add(map, [&] {
            ucp_mem_map_params_t params{};
            params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
            params.address    = used.memory;
            params.length     = _length;
            check_ok(ucp_mem_map(_host, &params, &used.host), "ucp_mem_map");
        });
        if (!_is_shared) {
            return;
        }
        void* packed       = nullptr;
        std::size_t length = 0;
        total.add(pack, [&] {
            const ucp_memh_pack_params_t params{.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS,
                                                .flags      = UCP_MEMH_PACK_FLAG_EXPORT};
            check_ok(ucp_memh_pack(used.host, &params, &packed, &length), "ucp_memh_pack");
        });
        total.add(import, [&] {
            ucp_mem_map_params_t params{};
            params.field_mask           = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
            params.exported_memh_buffer = packed;
            check_ok(ucp_mem_map(_dpu, &params, &used.imported), "ucp_mem_map of exported memory");
        });
        const ucp_memh_buffer_release_params_t release{};
        ucp_memh_buffer_release(packed, &release);
    }

    void end(buffer& used, spent& total, bool keeps_memory)
    {
        if (_is_shared) {
            total.add(release_import, [&] { check_ok(ucp_mem_unmap(_dpu, used.imported), "ucp_mem_unmap"); });
        }
        // UCP deregisters when the memory goes, or with its next call.
        total.add(unmap, [&] {
            check_ok(ucp_mem_unmap(_host, used.host), "ucp_mem_unmap");
            if (!keeps_memory) {
                release(used);
            }
        });
    }

    void release(buffer& used)
    {
        munmap(used.memory, _length);
        used.memory = nullptr;
    }

private:
    ucp_context_h _host;
    ucp_context_h _dpu;
    std::uint64_t _length;
    bool _is_shared;
};

void run_cycles(const chosen_options& chosen, cycle& each, unsigned repeats, spent& total)
{
    std::vector<buffer> buffers(chosen.buffers == "held" ? repeats : 1);
    for (unsigned i = 0; i < repeats; ++i) {
        buffer& used = buffers[i % buffers.size()];
        each.begin(used, total);
        if (chosen.buffers != "held") {
            each.end(used, total, chosen.buffers == "same");
        }
    }
    if (chosen.buffers == "held") {
        for (buffer& used : buffers) {
            each.end(used, total, false);
        }
    } else if (chosen.buffers == "same") {
        each.release(buffers.front());
    }
}

// Threads of the library make spare keys when the first ones were taken, and aliases of those that were announced.
void wait_until_idle(const device_counts& device)
{
    counts before = device.now();
    for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const counts now = device.now();
        if ((now - before).commands == 0) {
            return;
        }
        before = now;
    }
}

void measure(const chosen_options& chosen, ucp_context_h host, ucp_context_h dpu, std::uint64_t length)
{
    const device_counts device;
    cycle shared(host, dpu, length, true);
    cycle registered(host, dpu, length, false);
    spent ignored, plain;
    // A pool is warm, and a cache full, when the same was done before.
    if (chosen.buffers != "held") {
        for (int i = 0; i < 3; ++i) {
            run_cycles(chosen, shared, 3, ignored);
            wait_until_idle(device);
        }
    }
    spent total;
    const counts before = device.now();
    run_cycles(chosen, shared, chosen.repeats, total);
    const counts cost = device.now() - before;
    run_cycles(chosen, registered, 3, ignored);
    const counts plain_before = device.now();
    run_cycles(chosen, registered, chosen.repeats, plain);
    const counts plain_cost = device.now() - plain_before;
    const double times      = chosen.repeats;
    std::string steps;
    for (unsigned i = 0; i < num_steps; ++i) {
        steps += fmt::format("\"{}_us\": {:.2f}, ", step_names[i], total.us[i] / times);
    }
    fmt::print("{{\"length\": {}, {}\"us\": {:.2f}, \"registration_us\": {:.2f}, \"commands\": {:.2f}, "
               "\"registration_commands\": {:.2f}, \"work_requests\": {:.2f}}}\n",
               length, steps, std::accumulate(std::begin(total.us), std::end(total.us), 0.0) / times,
               std::accumulate(std::begin(plain.us), std::end(plain.us), 0.0) / times,
               static_cast<double>(cost.commands) / times, static_cast<double>(plain_cost.commands) / times,
               static_cast<double>(cost.work_requests) / times);
    std::fflush(stdout);
}

void run(const chosen_options& chosen)
{
    const test::context host({.config = {{"TLS", "rc_x,lay_copy"}, {"NET_DEVICES", "mlx5_0:1"}}});
    const test::context dpu({.config = {{"TLS", "rc_x,lay_copy"}, {"NET_DEVICES", "mlx5_1:1"}}});
    for (const std::uint64_t length : chosen.lengths) {
        measure(chosen, host.get(), dpu.get(), length);
    }
}

} // namespace

} // namespace ucxl::bench

int main(int argc, char** argv)
{
    ucxl::bench::chosen_options chosen;
    CLI::App app("one method of the benchmark xgvmi, below softhca-run --functions 2");
    app.add_option("--buffers", chosen.buffers)->check(CLI::IsMember({"fresh", "held", "same"}));
    app.add_option("--repeats", chosen.repeats)->check(CLI::Range(1, 100000));
    app.add_option("--lengths", chosen.lengths)->delimiter(',');
    CLI11_PARSE(app, argc, argv);
    try {
        ucxl::bench::run(chosen);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "bench_xgvmi_side: {}\n", failure.what());
        return 1;
    }
    return 0;
}

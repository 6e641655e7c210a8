// `contrib/dev bench keys`: what layout keys cost the CPU, beside the same transfer posted as one work request per
// block and as lists of scatter/gather elements.
//
// CPU time only, of the thread that does it: requests are built and written into the send queue, and then taken back
// (ibv_wr_abort) before the doorbell, so no time of a device is in it; the rows that say so are executed, on the
// software device unless UCXL_TEST_DEVICE names a real one, and include what that costs. Figures are medians of
// samples.
#include "uct/mlx5_layout/device/software_device.h"
#include "uct/mlx5_layout/device/verbs_pair.h"

#include "ucs/layout/build.h"
#include "uct/ib/mlx5/layout/api/uct_mlx5_layout.h"
#include "uct/ib/mlx5/layout/lower.h"
#include "uct/ib/mlx5/layout/umr_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <vector>

namespace ucxl::bench
{

namespace
{

using namespace mlx5;

double now_ns()
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double time_of(const std::function<void()>& what, unsigned times)
{
    const double begin = now_ns();
    for (unsigned i = 0; i < times; ++i) {
        what();
    }
    return now_ns() - begin;
}

// Nanoseconds of one call, median of 11 samples of at least 1 ms. The clock is a system call: read once a sample.
double cost(const std::function<void()>& what)
{
    unsigned times = 1;
    while (time_of(what, times) < 1e6) {
        times *= 2;
    }
    std::array<double, 11> samples;
    for (double& sample : samples) {
        sample = time_of(what, times) / times;
    }
    std::ranges::nth_element(samples, samples.begin() + samples.size() / 2);
    return samples[samples.size() / 2];
}

void check(bool worked, const char* what)
{
    if (!worked) {
        throw std::runtime_error(what);
    }
}

// Requests of the queue pair under way at once, as verbs_pair makes it.
constexpr std::size_t queue_depth = 64;

class key_bench
{
public:
    explicit key_bench(test::verbs_pair& pair) : _pair(pair)
    {
        uct_mlx5_layout_domain_params_t params{};
        params.field_mask = UCT_MLX5_LAYOUT_DOMAIN_FIELD_PD;
        params.pd         = pair.pd();
        check(uct_mlx5_layout_domain_open(&params, &_domain) == UCS_OK, "domain");
        _mr = pair.registered(_memory.data(), _memory.size());
    }

    ~key_bench() { uct_mlx5_layout_domain_close(_domain); }

    void encode_rows()
    {
        fmt::print(
            "one bind request, built and written to the send queue, ns of CPU per bind\n{:>10} {:>10} {:>10} {:>10}\n",
            "entries", "batch 1", "batch 8", "batch 64");
        for (const std::size_t entries : {1, 4, 8, 16, 20}) {
            fmt::print("{:>10}", entries);
            for (const std::size_t batch : {1, 8, 64}) {
                fmt::print(" {:>10.0f}", cost([&] { write_binds(entries, batch); }) / static_cast<double>(batch));
            }
            fmt::print("\n");
        }
    }

    void executed_rows()
    {
        fmt::print("\na region set by the C API: lowered, encoded, posted, executed and waited for (device included)\n"
                   "{:>10} {:>12} {:>14} {:>14}\n",
                   "entries", "us", "layouts/s", "entries/s");
        for (const std::size_t entries : {1, 16, 64, 1024, 16384, 65532}) {
            executed_row(entries);
        }
        executed_row(std::size_t{1} << 20);
    }

    void blocks_rows()
    {
        constexpr std::size_t blocks = 112000;
        constexpr std::size_t length = 2048;
        fmt::print("\n{} blocks of {} bytes (a KV cache) as one write: CPU of posting the data\n"
                   "{:>34} {:>12} {:>14}\n",
                   blocks, length, "method", "requests", "us");
        const double one   = cost([&] { write_requests(1, 1); });
        const double each  = cost([&] { write_requests(queue_depth, 1); }) / queue_depth;
        const double list  = cost([&] { write_requests(queue_depth, max_elements); }) / queue_depth;
        const double lists = static_cast<double>((blocks + max_elements - 1) / max_elements);
        const auto row     = [](const char* name, double requests, double ns) {
            fmt::print("{:>34} {:>12} {:>14.2f}\n", name, requests, ns / 1000);
        };
        row("layout key, bound before", 1, one);
        row("a request per block", blocks, each * blocks);
        row(fmt::format("lists of {} elements", max_elements).c_str(), lists, list * lists);
        fmt::print("{:>34} {:>12} {:>13.4f}%\n", "key / request per block", "", 100 * one / (each * blocks));
    }

private:
    static constexpr int max_elements = 4; // of verbs_pair's queue pairs

    std::vector<resolved_entry> resolved(std::size_t entries) const
    {
        std::vector<resolved_entry> all(entries);
        for (std::size_t i = 0; i < entries; ++i) {
            all[i] = {_mr->lkey, reinterpret_cast<std::uintptr_t>(_memory.data()) + i * 4096, 64, 0};
        }
        return all;
    }

    void write_binds(std::size_t entries, std::size_t batch)
    {
        static const std::vector<resolved_entry> all = resolved(64);
        ibv_qp_ex* const qp                          = ibv_qp_to_qp_ex(_pair.qp());
        mlx5dv_qp_ex* const raw                      = mlx5dv_qp_ex_from_ibv_qp_ex(qp);
        std::array<std::byte, 1024> encoded;
        ibv_wr_start(qp);
        for (std::size_t i = 0; i < batch; ++i) {
            const auto place = std::span(encoded).first(entries_bytes(key_kind::klm, entries));
            check(encode_entries(key_kind::klm, 1, std::span(all).first(entries), place).has_value(), "entries");
            encode_bind({.key = 0x100, .rights = {true, true, true, true}, .length = entries * 64, .start_address = {}},
                        _pair.qp()->qp_num, {}, place, _request);
            qp->wr_id = i;
            mlx5dv_wr_raw_wqe(raw, _request.bytes.data());
        }
        ibv_wr_abort(qp);
    }

    void write_requests(std::size_t requests, int elements)
    {
        ibv_qp_ex* const qp = ibv_qp_to_qp_ex(_pair.qp());
        std::array<ibv_sge, max_elements> list;
        ibv_wr_start(qp);
        for (std::size_t i = 0; i < requests; ++i) {
            for (int e = 0; e < elements; ++e) {
                list[static_cast<std::size_t>(e)] = {reinterpret_cast<std::uintptr_t>(_memory.data()) + i * 4096, 2048,
                                                     _mr->lkey};
            }
            qp->wr_id    = i;
            qp->wr_flags = 0;
            ibv_wr_rdma_write(qp, 0x100, i * 2048);
            ibv_wr_set_sge_list(qp, static_cast<std::size_t>(elements), list.data());
        }
        ibv_wr_abort(qp);
    }

    void executed_row(std::size_t entries)
    {
        uct_mlx5_layout_region_params_t params{};
        params.field_mask               = UCT_MLX5_LAYOUT_REGION_FIELD_MAX_ENTRIES;
        params.max_entries              = static_cast<std::uint32_t>(std::clamp<std::size_t>(entries, 4, 65532));
        uct_mlx5_layout_region_h region = nullptr;
        check(uct_mlx5_layout_region_create(_domain, &params, &region) == UCS_OK, "region");
        std::vector<ibv_sge> pieces(entries);
        for (std::size_t i = 0; i < entries; ++i) {
            // Irregular, so that nothing but a list describes them.
            pieces[i] = {reinterpret_cast<std::uintptr_t>(_memory.data()) + i * 16 + i * i % 7, 8, _mr->lkey};
        }
        const double ns = cost([&] {
            check(uct_mlx5_layout_set_sg(region, UCT_MLX5_LAYOUT_SET_AVOID_INVALIDATION, entries, pieces.data()) ==
                      UCS_OK,
                  "set");
        });
        fmt::print("{:>10} {:>12.2f} {:>14.0f} {:>14.0f}\n", entries, ns / 1000, 1e9 / ns,
                   1e9 / ns * static_cast<double>(entries));
        uct_mlx5_layout_region_destroy(region);
    }

    test::verbs_pair& _pair;
    uct_mlx5_layout_domain_h _domain = nullptr;
    std::vector<std::byte> _memory   = std::vector<std::byte>(std::size_t{17} << 20);
    ibv_mr* _mr                      = nullptr;
    request_bytes _request;
};

} // namespace

} // namespace ucxl::bench

int main(int, char** argv)
{
    ucxl::test::use_software_device(argv, SOFTHCA_LIBRARY);
    try {
        ucxl::test::verbs_pair pair;
        ucxl::bench::key_bench bench(pair);
        bench.encode_rows();
        bench.executed_rows();
        bench.blocks_rows();
    } catch (const std::runtime_error& failed) {
        fmt::print(stderr, "bench: {}\n", failed.what());
        return 1;
    }
}

#include "key_costs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "bench/common/measure.h"
#include "key_bench.h"
#include "uct/ib/mlx5/layout/umr_request.h"

namespace ucxl::bench
{

namespace
{

using namespace mlx5;

double cpu_seconds()
{
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Nanoseconds of one call. The clock is a system call: read once a sample.
double cost(const std::function<void()>& what)
{
    const auto time_of = [&](unsigned times) {
        const double begin = cpu_seconds();
        for (unsigned i = 0; i < times; ++i) {
            what();
        }
        return cpu_seconds() - begin;
    };
    return alternate({.rounds = 11, .sample_time = 1e-3, .most_time = no_limit}, {{"", time_of}})[0].time * 1e9;
}

// Memory whose pieces are far enough apart for all rows.
struct scattered {
    explicit scattered(test::verbs_pair& pair) : mr(pair.registered(bytes.data(), bytes.size())) {}

    std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uintptr_t>(bytes.data()) + offset; }

    std::vector<std::byte> bytes = std::vector<std::byte>(std::size_t{17} << 20);
    ibv_mr* mr;
};

// Into the send queue and out again before the doorbell: no device has a part in it.
void write_binds(test::verbs_pair& pair, std::span<const resolved_entry> entries, std::size_t batch)
{
    static request_bytes request;
    ibv_qp_ex* const qp     = ibv_qp_to_qp_ex(pair.qp());
    mlx5dv_qp_ex* const raw = mlx5dv_qp_ex_from_ibv_qp_ex(qp);
    std::array<std::byte, max_request_bytes> encoded;
    const auto place = std::span(encoded).first(entries_bytes(key_kind::klm, entries.size()));
    ibv_wr_start(qp);
    for (std::size_t i = 0; i < batch; ++i) {
        check(encode_entries(key_kind::klm, 1, entries, place).has_value(), "entries");
        encode_bind(
            {.key = 0x100, .rights = {true, true, true, true}, .length = entries.size() * 64, .start_address = {}},
            pair.qp()->qp_num, {}, place, request);
        qp->wr_id = i;
        mlx5dv_wr_raw_wqe(raw, request.bytes.data());
    }
    ibv_wr_abort(qp);
}

void write_requests(test::verbs_pair& pair, const scattered& memory, std::size_t requests, std::size_t elements)
{
    ibv_qp_ex* const qp = ibv_qp_to_qp_ex(pair.qp());
    std::array<ibv_sge, test::max_elements> list;
    ibv_wr_start(qp);
    for (std::size_t i = 0; i < requests; ++i) {
        for (std::size_t e = 0; e < elements; ++e) {
            list[e] = {memory.at((i * elements + e) % 4096 * 4096), kv_cache::block_bytes, memory.mr->lkey};
        }
        qp->wr_id    = i;
        qp->wr_flags = 0;
        ibv_wr_rdma_write(qp, 0x100, i * elements * kv_cache::block_bytes);
        ibv_wr_set_sge_list(qp, elements, list.data());
    }
    ibv_wr_abort(qp);
}

table set_row(key_domain& domain, const scattered& memory, std::size_t entries)
{
    const key_region region(domain, std::clamp<std::size_t>(entries, 4, 65532));
    std::vector<ibv_sge> pieces(entries);
    for (std::size_t i = 0; i < entries; ++i) {
        // Irregular, so that nothing but a list describes them.
        pieces[i] = {memory.at(i * 16 + i * i % 7), 8, memory.mr->lkey};
    }
    const double ns = cost([&] { region.set(pieces); });
    return {{"entries", entries},
            {"us", ns / 1000},
            {"layouts/s", 1e9 / ns},
            {"entries/s", 1e9 / ns * static_cast<double>(entries)}};
}

} // namespace

table bind_costs(test::verbs_pair& pair)
{
    const scattered memory(pair);
    table rows = table::array();
    for (const std::size_t entries : {1, 4, 8, 16, 20}) {
        std::vector<resolved_entry> all(entries);
        for (std::size_t i = 0; i < entries; ++i) {
            all[i] = {memory.mr->lkey, memory.at(i * 4096), 64, 0};
        }
        table row{{"entries", entries}};
        for (const std::size_t batch : {1, 8, 64}) {
            row[fmt::format("batch {}", batch)] =
                cost([&] { write_binds(pair, all, batch); }) / static_cast<double>(batch);
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

table set_costs(test::verbs_pair& pair)
{
    const scattered memory(pair);
    key_domain domain(pair);
    table rows = table::array();
    for (const std::size_t entries : {1, 16, 64, 1024, 16384, 65532, 65536, 1 << 20}) {
        rows.push_back(set_row(domain, memory, entries));
    }
    return rows;
}

table post_costs(test::verbs_pair& pair)
{
    const scattered memory(pair);
    constexpr std::size_t batch = 64; // requests under way at once, as verbs_pair makes its queues
    const double one            = cost([&] { write_requests(pair, memory, 1, 1); });
    double of_single_blocks     = 0;
    table rows                  = table::array();
    rows.push_back({{"method", "layout key, bound before"}, {"requests", 1}, {"us", one / 1000}});
    for (const std::size_t elements : {1, 4, 30}) {
        const std::size_t requests = (kv_cache::blocks + elements - 1) / elements;
        const double each          = cost([&] { write_requests(pair, memory, batch, elements); }) / batch;
        const double all           = each * static_cast<double>(requests);
        of_single_blocks           = elements == 1 ? all : of_single_blocks;
        rows.push_back({{"method", elements == 1 ? std::string("a request per block")
                                                 : fmt::format("lists of {} elements", elements)},
                        {"requests", requests},
                        {"us", all / 1000}});
    }
    for (table& row : rows) {
        row["% of per block"] = 100 * row["us"].get<double>() * 1000 / of_single_blocks;
    }
    return rows;
}

} // namespace ucxl::bench

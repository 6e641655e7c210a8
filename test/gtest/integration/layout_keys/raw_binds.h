// Key changes that the library would not make: raw requests on a queue pair of their own, and keys for them.
//
// Example: raw_binds binds(pair); raw_key key(pair.pd(), 4);
//          EXPECT_EQ(binds.execute(binds.list(key, entries)), IBV_WC_SUCCESS); // and the key shows the entries
#pragma once

#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include <infiniband/mlx5dv.h>

#include "support/verbs.h"
#include "support/verbs_pair.h"
#include "uct/ib/mlx5/layout/capabilities.h"
#include "uct/ib/mlx5/layout/umr_request.h"

namespace ucxl::test
{

class raw_key
{
public:
    raw_key(ibv_pd* pd, std::uint16_t max_entries)
    {
        mlx5dv_mkey_init_attr wanted{};
        wanted.pd           = pd;
        wanted.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT;
        wanted.max_entries  = max_entries;
        _key                = made(mlx5dv_create_mkey(&wanted), "mlx5dv_create_mkey");
    }
    ~raw_key() { mlx5dv_destroy_mkey(_key); }
    raw_key(const raw_key&)            = delete;
    raw_key& operator=(const raw_key&) = delete;

    std::uint32_t number() const { return _key->rkey; } // lkey and rkey

private:
    mlx5dv_mkey* _key;
};

class raw_binds
{
public:
    static constexpr mlx5::key_rights rights{.local_write = true, .remote_read = true, .remote_write = true};

    explicit raw_binds(const verbs_pair& home) : _pair(verbs_pair::beside{home}), _said(asked(home.context())) {}

    const mlx5::capabilities& said() const { return _said; }
    mlx5::request_flags flags() const { return mlx5::flags_of(_said); }

    // Of at most four entries.
    mlx5::request_bytes list(const raw_key& key, std::span<const mlx5::resolved_entry> entries) const
    {
        return list(key, entries, flags());
    }

    mlx5::request_bytes list(const raw_key& key, std::span<const mlx5::resolved_entry> entries,
                             const mlx5::request_flags& flags) const
    {
        alignas(64) std::array<std::byte, 64> encoded{};
        if (!mlx5::encode_entries(mlx5::key_kind::klm, 0, entries, encoded)) {
            throw std::runtime_error("entries");
        }
        mlx5::request_bytes request;
        mlx5::encode_bind(bind_of(key, entries), 0, flags, encoded, request);
        return request;
    }

    // The same with the entries at that address, in memory of that key.
    mlx5::request_bytes list_at(void* place, std::uint32_t lkey, const raw_key& key,
                                std::span<const mlx5::resolved_entry> entries) const
    {
        const std::size_t size = mlx5::entries_bytes(mlx5::key_kind::klm, entries.size());
        mlx5::request_bytes request;
        if (!mlx5::encode_entries(mlx5::key_kind::klm, 0, entries, std::span(static_cast<std::byte*>(place), size)) ||
            !mlx5::encode_bind_by_pointer(bind_of(key, entries), 0, flags(), size, lkey,
                                          reinterpret_cast<std::uintptr_t>(place), request)) {
            throw std::runtime_error("entries in memory");
        }
        return request;
    }

    mlx5::request_bytes invalidation(const raw_key& key, const mlx5::request_flags& flags) const
    {
        mlx5::request_bytes request;
        mlx5::encode_invalidate(key.number(), 0, flags, request);
        return request;
    }

    ibv_wc_status execute(const mlx5::request_bytes& request) { return execute(std::vector{request}); }

    // The status of the first one that fails, or success of all. After a failure the queue pair works again.
    ibv_wc_status execute(std::vector<mlx5::request_bytes> requests)
    {
        for (mlx5::request_bytes& request : requests) {
            (void)control_of(request).set(prm::wqe_control_segment::qpn, _pair.qp()->qp_num & 0xffffff);
        }
        control_of(requests.back()).put<prm::wqe_completion::always>(prm::wqe_control_segment::completion);
        ibv_qp_ex* const extended = ibv_qp_to_qp_ex(_pair.qp());
        ibv_wr_start(extended);
        for (const mlx5::request_bytes& request : requests) {
            mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(extended), request.bytes.data());
        }
        worked(ibv_wr_complete(extended), "posting key changes");
        const ibv_wc_status status = _pair.wait().status;
        if (status != IBV_WC_SUCCESS) {
            _pair.reconnect();
        }
        return status;
    }

    static prm::view<prm::wqe_control_segment> control_of(mlx5::request_bytes& request)
    {
        return prm::view<prm::wqe_control_segment>(
            std::span(request.bytes).first<prm::wqe_control_segment::size_bytes>());
    }

    static mlx5::resolved_entry entry(const ibv_sge& piece) { return {piece.lkey, piece.addr, piece.length, 0}; }

private:
    static mlx5::capabilities asked(ibv_context* context)
    {
        auto said = mlx5::query_capabilities(context);
        if (!said) {
            throw std::runtime_error(said.error().message);
        }
        return *said;
    }

    static mlx5::bind_request bind_of(const raw_key& key, std::span<const mlx5::resolved_entry> entries)
    {
        mlx5::bind_request request{.key = key.number(), .rights = rights, .length = 0, .start_address = {}};
        for (const mlx5::resolved_entry& each : entries) {
            request.length += each.length;
        }
        return request;
    }

    verbs_pair _pair;
    mlx5::capabilities _said;
};

} // namespace ucxl::test

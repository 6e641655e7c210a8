// The two ends of dynamic connections as a program on libmlx5 has them. A failure throws std::runtime_error.
//
// Example: dc_target target(pd, cq);
//          dc_initiator initiator(pd, cq);
//          EXPECT_EQ(initiator.write({.target = target.number()}, from, remote, rkey), IBV_WC_SUCCESS);
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

namespace ucxl::test
{

inline constexpr std::uint64_t dc_access_key = 0xfedcba9876543210;

// A queue of receives, as targets have them.
ibv_srq* create_receives(ibv_pd* pd);
void post_receive(ibv_srq* receives, ibv_sge into);

class dc_target
{
public:
    // Receives complete on the queue.
    dc_target(ibv_pd* pd, ibv_cq* cq);
    ~dc_target();
    dc_target(const dc_target&)            = delete;
    dc_target& operator=(const dc_target&) = delete;

    std::uint32_t number() const { return _qp->qp_num; }
    ibv_qp* qp() const { return _qp; }

private:
    ibv_srq* _srq = nullptr;
    ibv_qp* _qp   = nullptr;
};

// Where a request goes.
struct dc_route {
    std::uint32_t target     = 0;
    std::uint64_t access_key = dc_access_key;
    std::uint16_t stream     = 0;       // of an initiator with stream channels
    std::optional<std::uint16_t> lid{}; // of the target's port, if that is another one
    std::optional<ibv_gid> gid{};       // in the route header, if that is not the target's own
};

class dc_initiator
{
public:
    // `streams`: logarithms of the number of stream channels, and of how many may be in error.
    dc_initiator(ibv_pd* pd, ibv_cq* cq, const mlx5dv_dci_streams& streams = {});
    ~dc_initiator();
    dc_initiator(const dc_initiator&)            = delete;
    dc_initiator& operator=(const dc_initiator&) = delete;

    ibv_qp* qp() const { return _qp; }
    ibv_qp_state state() const;

    // These wait for the completion, which is the next one of the queue.
    ibv_wc_status write(const dc_route& route, const ibv_sge& from, std::uint64_t remote, std::uint32_t rkey);
    ibv_wc_status send(const dc_route& route, const ibv_sge& from);

    // From INIT on, where a new queue pair is, and after an error.
    void to_init();
    void to_rtr();
    void to_rts();
    void reconnect();

private:
    template <typename Fill>
    ibv_wc_status execute(const dc_route& route, const ibv_sge& from, const Fill& fill);

    ibv_pd* _pd;
    ibv_cq* _cq;
    bool _has_streams;
    ibv_qp* _qp = nullptr;
};

} // namespace ucxl::test

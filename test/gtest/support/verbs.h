// What every program on libibverbs begins with: objects or the reason why there are none, and a connected queue pair.
// Everything throws std::runtime_error.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>

namespace ucxl::test
{

inline constexpr unsigned remote_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

template <typename Object>
Object* made(Object* object, const char* call)
{
    if (object == nullptr) {
        throw std::runtime_error(std::string(call) + ": " + std::strerror(errno));
    }
    return object;
}

// status: an errno, or -1 with errno set.
inline void worked(int status, const char* call)
{
    if (status != 0) {
        throw std::runtime_error(std::string(call) + ": " + std::strerror(status > 0 ? status : errno));
    }
}

struct connection {
    std::uint32_t peer            = 0;  // number of the peer's queue pair
    std::uint16_t lid             = 0;  // of the peer's port
    std::uint8_t timeout_exponent = 14; // of the ACK timeout, with 7 retries
    std::uint8_t min_rnr_timer    = 12;
};

// Without atomics on a device that has none: the kernel refuses such a queue pair.
inline unsigned remote_access_of(ibv_context* device)
{
    ibv_device_attr attributes{};
    worked(ibv_query_device(device, &attributes), "ibv_query_device");
    return attributes.atomic_cap != IBV_ATOMIC_NONE ? remote_access : remote_access & ~IBV_ACCESS_REMOTE_ATOMIC;
}

// From RESET to RTS, between ports of one network.
inline void connect_queue_pair(ibv_qp* queue_pair, const connection& to)
{
    ibv_port_attr port{};
    worked(ibv_query_port(queue_pair->context, 1, &port), "ibv_query_port");
    ibv_qp_attr next{};
    next.qp_state        = IBV_QPS_INIT;
    next.port_num        = 1;
    next.qp_access_flags = remote_access_of(queue_pair->context) | IBV_ACCESS_LOCAL_WRITE;
    worked(ibv_modify_qp(queue_pair, &next, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
           "INIT");
    next                    = {};
    next.qp_state           = IBV_QPS_RTR;
    next.path_mtu           = port.active_mtu;
    next.dest_qp_num        = to.peer;
    next.max_dest_rd_atomic = 4;
    next.min_rnr_timer      = to.min_rnr_timer;
    next.ah_attr.dlid       = to.lid;
    next.ah_attr.port_num   = 1;
    if (port.link_layer != IBV_LINK_LAYER_INFINIBAND) {
        next.ah_attr.is_global     = 1;
        next.ah_attr.grh.hop_limit = 1;
        worked(ibv_query_gid(queue_pair->context, 1, 0, &next.ah_attr.grh.dgid), "ibv_query_gid");
    }
    worked(ibv_modify_qp(queue_pair, &next,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
           "RTR");
    next               = {};
    next.qp_state      = IBV_QPS_RTS;
    next.timeout       = to.timeout_exponent;
    next.retry_cnt     = 7;
    next.rnr_retry     = 7;
    next.max_rd_atomic = 4;
    worked(ibv_modify_qp(queue_pair, &next,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                             IBV_QP_MAX_QP_RD_ATOMIC),
           "RTS");
}

} // namespace ucxl::test

// A queue pair, as the kernel's part keeps it.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include <cstdint>

#include "prm/qpc.h"
#include "verbs_objects.h"

namespace ucxl::softhca
{

class qp_object final : public uobject
{
public:
    static constexpr object_kind own_kind = object_kind::qp;

    qp_object(device_file& of, pd_object& pd, std::uint32_t number)
        : uobject(own_kind), file(of), domain(&pd), qpn(number)
    {
    }

    void forget_channel(const event_file& channel) override;
    void route_events();

    device_file& file;
    reference<pd_object> domain;
    reference<cq_object> send_cq;
    reference<cq_object> receive_cq;
    reference<srq_object> srq;
    const std::uint32_t qpn;
    user_memory buffer;
    user_memory doorbell;
    event_target events;
    prm::qp_service service = prm::qp_service::rc;
    ib_uverbs_qp_cap limits{};
    bool signal_all               = false;
    std::uint32_t state           = 0; // IBV_QPS_*
    std::uint32_t port            = 0;
    std::uint32_t access          = 0; // the last that was asked for, with or without responder resources
    std::uint32_t responder_reads = 0; // max_dest_rd_atomic

private:
    int release() override;
};

} // namespace ucxl::softhca

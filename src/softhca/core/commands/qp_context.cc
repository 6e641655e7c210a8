#include "qp_context.h"

#include <algorithm>
#include <span>

namespace ucxl::softhca
{

void load_context(qp_record& qp, prm::const_view<prm::qpc> context)
{
    const auto path       = context.at(prm::qpc::primary_address_path);
    const auto gid        = path.at(prm::ads::rgid_rip);
    qp.qkey               = context.get(prm::qpc::q_key);
    qp.path.remote_lid    = path.get(prm::ads::rlid);
    qp.path.remote_qpn    = context.get(prm::qpc::remote_qpn);
    qp.path.service_level = path.get(prm::ads::sl);
    qp.path.port          = path.get(prm::ads::vhca_port_num);
    qp.path.mtu           = static_cast<std::uint8_t>(context.get(prm::qpc::mtu));
    qp.path.has_grh       = path.get(prm::ads::grh);
    qp.retry_count        = context.get(prm::qpc::retry_count);
    qp.rnr_retry          = context.get(prm::qpc::rnr_retry);
    qp.min_rnr_timer      = context.get(prm::qpc::min_rnr_nak);
    qp.ack_timeout        = path.get(prm::ads::ack_timeout);
    qp.max_reads_out      = static_cast<std::uint8_t>(1U << context.get(prm::qpc::log_sra_max));
    qp.max_reads_in       = static_cast<std::uint8_t>(1U << context.get(prm::qpc::log_rra_max));
    qp.remote_read        = context.get(prm::qpc::rre);
    qp.remote_write       = context.get(prm::qpc::rwe);
    qp.remote_atomic      = context.get(prm::qpc::rae);
    std::ranges::copy(gid, std::as_writable_bytes(std::span(qp.path.remote_gid)).begin());
}

void store_context(const qp_record& qp, prm::view<prm::qpc> context)
{
    std::ranges::copy(std::as_bytes(std::span(qp.context)), context.span().begin());
    (void)context.set(prm::qpc::state, qp.state);
    (void)context.set(prm::qpc::next_send_psn, qp.send.psn & 0xffffff);
    (void)context.set(prm::qpc::next_rcv_psn, qp.expected_psn & 0xffffff);
    (void)context.set(prm::qpc::last_acked_psn, (qp.send.psn - 1) & 0xffffff);
    (void)context.set(prm::qpc::rmsn, qp.message & 0xffffff);
    context.put(prm::qpc::hw_sq_wqebb_counter, qp.send.consumed);
    context.put(prm::qpc::sw_sq_wqebb_counter, qp.send.rung);
    context.put(prm::qpc::hw_rq_counter, std::uint32_t{qp.receive.consumed});
}

} // namespace ucxl::softhca

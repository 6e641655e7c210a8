#include "qp_path.h"

#include <algorithm>
#include <cstddef>
#include <span>

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t path_bits_mask  = 0x7f;
constexpr std::uint32_t flow_label_mask = 0xfffff;
constexpr std::uint32_t first_rate      = 2; // IBV_RATE_2_5_GBPS, the first of those the device numbers from 7
constexpr std::uint32_t rate_offset     = 5;

} // namespace

void set_path(mailbox<prm::modify_qp_in>& in, const ib_uverbs_qp_dest& to)
{
    const auto path = in.at(prm::modify_qp_in::qpc).at(prm::qpc::primary_address_path);
    in.set(path, prm::ads::rlid, to.dlid);
    in.set(path, prm::ads::mlid, to.src_path_bits & path_bits_mask);
    in.set(path, prm::ads::sl, to.sl);
    in.set(path, prm::ads::vhca_port_num, to.port_num);
    in.set(path, prm::ads::stat_rate, to.static_rate >= first_rate ? to.static_rate + rate_offset : 0);
    if (to.is_global == 0) {
        return;
    }
    in.set(path, prm::ads::grh, 1);
    in.set(path, prm::ads::src_addr_index, to.sgid_index);
    in.set(path, prm::ads::hop_limit, to.hop_limit);
    in.set(path, prm::ads::tclass, to.traffic_class);
    in.set(path, prm::ads::flow_label, to.flow_label & flow_label_mask);
    std::ranges::copy(std::as_bytes(std::span(to.dgid)), path.at(prm::ads::rgid_rip).begin());
}

void get_path(prm::const_view<prm::ads> path, ib_uverbs_qp_dest& to)
{
    const std::uint32_t rate = path.get(prm::ads::stat_rate);
    to.dlid                  = path.get(prm::ads::rlid);
    to.src_path_bits         = path.get(prm::ads::mlid);
    to.sl                    = path.get(prm::ads::sl);
    to.port_num              = path.get(prm::ads::vhca_port_num);
    to.static_rate           = static_cast<std::uint8_t>(rate > rate_offset ? rate - rate_offset : 0);
    to.is_global             = path.get(prm::ads::grh) ? 1 : 0;
    if (to.is_global == 0) {
        return;
    }
    to.sgid_index    = path.get(prm::ads::src_addr_index);
    to.hop_limit     = path.get(prm::ads::hop_limit);
    to.traffic_class = path.get(prm::ads::tclass);
    to.flow_label    = path.get(prm::ads::flow_label);
    std::ranges::copy(path.at(prm::ads::rgid_rip), std::as_writable_bytes(std::span(to.dgid)).begin());
}

} // namespace ucxl::softhca

#include "connection.h"

#include "prm/bits.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/limits.h"

namespace ucxl::softhca
{

std::array<std::byte, 16> port_gid(const function_record& function)
{
    std::array<std::byte, 16> gid;
    prm::detail::store_big_endian(gid.data(), default_gid_prefix);
    prm::detail::store_big_endian(gid.data() + 8, function.port_guid);
    return gid;
}

qp_record* find_receiver(arena& memory, std::uint16_t lid, std::uint32_t qpn, prm::qp_service service)
{
    qp_record* const found = memory.qps.find(qpn);
    if (found == nullptr || found->service != service || !receives(*found) || is_dead(memory, found->owner) ||
        !port_is_up(memory, found->owner.function)) {
        return nullptr;
    }
    return memory.function_table[found->owner.function].lid == lid ? found : nullptr;
}

qp_record* find_peer(arena& memory, const qp_record& qp, std::uint32_t qpn)
{
    qp_record* const peer = find_receiver(memory, qp.path.remote_lid, qp.path.remote_qpn, qp.service);
    if (peer == nullptr || peer->path.remote_qpn != qpn) {
        return nullptr;
    }
    return peer->path.remote_lid == memory.function_table[qp.owner.function].lid ? peer : nullptr;
}

bool in_sequence(const qp_record& qp, const qp_record& peer)
{
    return qp.service != prm::qp_service::rc || (qp.send.psn & psn_mask) == (peer.expected_psn & psn_mask);
}

void advance_sequence(qp_record& qp, qp_record& peer, std::uint32_t packets)
{
    qp.send.psn       = (qp.send.psn + packets) & psn_mask;
    peer.expected_psn = qp.send.psn;
    peer.message      = (peer.message + 1) & psn_mask;
}

} // namespace ucxl::softhca

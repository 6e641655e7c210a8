// Finds the peer of a queue pair, by local identifier and number, and keeps the packet sequence numbers of connected
// queue pairs. Messages are not cut into packets here, but the numbers advance as if they were.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

inline constexpr std::uint32_t psn_mask = 0xffffff;

// Log2 of the payload of a packet; that of the largest one when no MTU was set.
inline unsigned log_path_mtu(std::uint8_t mtu)
{
    return mtu >= 1 && mtu <= 5 ? 7U + mtu : 12U;
}

inline std::uint32_t packets_of(const qp_record& sender, std::uint64_t length)
{
    const unsigned log_bytes = log_path_mtu(sender.path.mtu);
    return length == 0 ? 1 : static_cast<std::uint32_t>((length + (1U << log_bytes) - 1) >> log_bytes);
}

// Whether requests are acknowledged.
constexpr bool is_reliable(prm::qp_service service)
{
    return service == prm::qp_service::rc || service == prm::qp_service::dci;
}

// Whether it accepts packets.
inline bool receives(const qp_record& qp)
{
    switch (qp.state) {
    case prm::qp_state::rtr:
    case prm::qp_state::rts:
    case prm::qp_state::send_error:
    case prm::qp_state::send_drain:
    case prm::qp_state::send_draining:
        return true;
    case prm::qp_state::reset:
    case prm::qp_state::init:
    case prm::qp_state::error:
    case prm::qp_state::suspended:
        break;
    }
    return false;
}

// The only GID of a port: the default prefix and its GUID.
std::array<std::byte, 16> port_gid(const function_record& function);

// The queue pair with that number and local identifier, if it accepts packets of that service.
qp_record* find_receiver(arena& memory, std::uint16_t lid, std::uint32_t qpn, prm::qp_service service);

// The peer that the queue pair is connected to, if it is connected back. Null: nobody answers.
qp_record* find_peer(arena& memory, const qp_record& qp, std::uint32_t qpn);

// A reliable connection accepts only the expected packet; unreliable services start anew with every message.
bool in_sequence(const qp_record& qp, const qp_record& peer);

// Advances both ends after a message of that many packets.
void advance_sequence(qp_record& qp, qp_record& peer, std::uint32_t packets);

} // namespace ucxl::softhca

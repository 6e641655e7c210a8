#include "datagram.h"

#include <array>
#include <cstring>

#include "connection.h"
#include "port_traffic.h"
#include "prm/bits.h"
#include "work_completion.h"

namespace ucxl::softhca
{

namespace
{

using outcome = transfer_result::outcome;
using prm::cqe_syndrome;
using compact = prm::wqe_compact_address_vector;
using whole   = prm::wqe_address_vector;

constexpr std::size_t grh_bytes         = 40; // every receive of a datagram starts with room for it
constexpr std::uint32_t own_qkey_wanted = 0x80000000;
constexpr std::size_t header_bytes      = 20; // base and datagram transport headers
constexpr std::size_t imm_bytes         = 4;
constexpr std::size_t trailer_bytes     = 4; // invariant CRC

struct destination {
    prm::const_view<compact> address;
    std::optional<prm::const_view<whole>> route; // when there is a global route header
};

std::optional<destination> destination_of(const send_request& request)
{
    const auto address = prm::const_view<compact>::over(request.address);
    if (!address) {
        return std::nullopt;
    }
    destination to{*address, std::nullopt};
    if (const auto full = prm::const_view<whole>::over(request.address); full && full->get(whole::grh)) {
        to.route = full;
    }
    return to;
}

std::array<std::byte, grh_bytes> route_header(const exchange& sender, prm::const_view<whole> route)
{
    constexpr std::uint32_t version_6     = 6U << 28;
    constexpr std::byte transport_follows = std::byte{0x1b};

    const bool imm            = sender.request.opcode == prm::wqe_opcode::send_imm;
    const std::uint64_t data  = (sender.request.data.length() + 3) / 4 * 4;
    const std::uint64_t bytes = header_bytes + (imm ? imm_bytes : 0) + data + trailer_bytes;
    std::array<std::byte, grh_bytes> header{};
    prm::detail::store_big_endian(header.data(), version_6 | std::uint32_t{route.get(whole::tclass)} << 20 |
                                                     std::uint32_t{route.get(whole::flow_label)});
    prm::detail::store_big_endian(header.data() + 4, static_cast<std::uint16_t>(bytes));
    header[6]             = transport_follows;
    header[7]             = std::byte{route.get(whole::hop_limit)};
    const auto source_gid = port_gid(sender.device.memory.function_table[sender.qp.owner.function]);
    const auto remote_gid = route.at(whole::rgid);
    std::memcpy(header.data() + 8, source_gid.data(), source_gid.size());
    std::memcpy(header.data() + 24, remote_gid.data(), remote_gid.size());
    return header;
}

qp_record* receiver_of(const exchange& sender, const destination& address)
{
    const std::uint32_t key   = address.address.get(compact::qkey);
    const std::uint32_t wire  = (key & own_qkey_wanted) != 0 ? sender.qp.qkey : key;
    qp_record* const receiver = find_receiver(sender.device.memory, address.address.get(compact::rlid),
                                              address.address.get(compact::destination_qpn), prm::qp_service::ud);
    return receiver != nullptr && receiver->qkey == wire ? receiver : nullptr;
}

// Builds the packet that arrives: the data, after a global route header if there is one.
struct packet {
    std::array<std::byte, grh_bytes> header;
    reference_list<max_send_segments + 1> parts;
    std::uint64_t length = 0;
};

void build(packet& made, const exchange& sender, const destination& address)
{
    made.length = sender.request.data.length();
    if (address.route) {
        made.header = route_header(sender, *address.route);
        made.parts.add({0, 0, grh_bytes, made.header.data()});
        made.length += grh_bytes;
    }
    for (const reference& part : sender.request.data.items()) {
        made.parts.add(part);
    }
}

// The receiver's own memory is not accessible.
answer fail_receiver(const exchange& sender, const responder& peer, const posted_receive& next)
{
    (void)complete_failed_receive(sender.device, peer.qp, peer.qpn, next, cqe_syndrome::local_protection);
    return {.peer_fails = true};
}

answer deliver_step_by_step(const exchange& sender, const responder& peer, const arrival& message, completion& cqe,
                            const memory_side& target, const packet& sent)
{
    const auto moved =
        transfer(sender.device, target, {sender.user(), right::local_read, sent.parts.items()}, sent.length);
    switch (moved.result) {
    case outcome::done:
        break;
    case outcome::to_refused:
        return fail_receiver(sender, peer, message.taken);
    case outcome::to_gone:
        return {};
    case outcome::part_done: // datagrams are not sent in turns
    case outcome::from_refused:
    case outcome::from_gone:
        return own_fault(cqe_syndrome::local_protection);
    }
    if (!complete_receive(sender, peer, cqe, message)) {
        return {.peer_fails = true, .peer_event = prm::event_type::wq_catastrophic_error};
    }
    return {};
}

answer deliver_to(const exchange& sender, const responder& peer, const destination& address)
{
    const std::uint64_t bytes = sender.request.data.length() + grh_bytes;
    posted_receive next;
    if (find_receive(sender, peer, next).result != answer::outcome::done) {
        counters_of(sender.device.memory, peer.qp).out_of_buffer++;
        return unanswered(sender);
    }
    if (bytes > next.data.length()) {
        return unanswered(sender);
    }
    if (!address.route) {
        next.data.skip(grh_bytes); // the bytes of the header stay unchanged
    }
    packet sent;
    build(sent, sender, address);
    completion cqe;
    (void)(*cqe.entry).set(prm::cqe64::grh, address.route ? 1U : 0U);
    const bool imm = sender.request.opcode == prm::wqe_opcode::send_imm;
    const arrival message{next, imm ? prm::cqe_opcode::responder_send_imm : prm::cqe_opcode::responder_send, bytes};
    key_user user = peer.user();
    user.pd       = next.pd;
    const memory_side target{user, right::local_write, next.data.items()};
    if (deliver_at_once(sender, peer, message, cqe, target, sent.parts.items(), sent.length)) {
        return {};
    }
    return deliver_step_by_step(sender, peer, message, cqe, target, sent);
}

} // namespace

datagram_result deliver_datagram(const exchange& sender)
{
    const auto to = destination_of(sender.request);
    if (!to) {
        return {own_fault(cqe_syndrome::local_qp_operation)};
    }
    if (sender.request.data.length() > (1U << log_path_mtu(sender.qp.path.mtu))) {
        return {own_fault(cqe_syndrome::local_length)};
    }
    qp_record* const receiver = receiver_of(sender, *to);
    if (receiver == nullptr) {
        return {unanswered(sender)};
    }
    const std::uint32_t qpn = to->address.get(compact::destination_qpn);
    return {deliver_to(sender, {*receiver, qpn}, *to), qpn};
}

} // namespace ucxl::softhca

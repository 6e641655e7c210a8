#include "remote_memory.h"

#include "tools/common/failure.h"

#include <cstring>

namespace ucxl::perf
{

namespace
{

constexpr std::size_t max_key_length = 1 << 16;

struct key_header {
    std::uint64_t address;
    std::uint64_t slot_distance;
};

std::vector<std::byte> message_with(ucp_context_h context, const exposed_memory& own)
{
    const key_header header{.address = own.address, .slot_distance = own.slot_distance};
    const auto header_bytes = std::as_bytes(std::span(&header, 1));
    std::vector<std::byte> message(header_bytes.begin(), header_bytes.end());
    const std::vector<std::byte> key = pack_key(context, own.memh);
    message.insert(message.end(), key.begin(), key.end());
    return message;
}

} // namespace

void remote_memory::send(oob_socket& peer, ucp_context_h context, const exposed_memory& own)
{
    peer.send(oob_kind::key, message_with(context, own));
}

remote_memory remote_memory::receive(oob_socket& peer, ucp_ep_h endpoint)
{
    const std::vector<std::byte> message = peer.receive(oob_kind::key, max_key_length);
    key_header header{};
    if (message.size() <= sizeof(header)) {
        tools::give_up("{} sent a remote key of {} bytes", peer.peer_name(), message.size());
    }
    std::memcpy(&header, message.data(), sizeof(header));
    remote_memory remote;
    remote._address       = header.address;
    remote._slot_distance = header.slot_distance;
    remote._key           = unpack_key(endpoint, std::span(message).subspan(sizeof(header)));
    return remote;
}

remote_memory remote_memory::trade(session& session, const exposed_memory& own)
{
    send(session.peer(), session.context(), own);
    return receive(session.peer(), session.endpoint());
}

} // namespace ucxl::perf

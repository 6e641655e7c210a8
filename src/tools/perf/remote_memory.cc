#include "remote_memory.h"

namespace ucxl::perf
{

namespace
{

constexpr std::size_t max_key_length = 1 << 16;

struct key_header {
    std::uint64_t address;
    std::uint64_t slot_distance;
};

} // namespace

void remote_memory::send(oob_socket& peer, ucp_context_h context, const exposed_memory& own)
{
    if (own.memh == nullptr) {
        tools::give_up("the method registers no memory that {} could reach", peer.peer_name());
    }
    peer.send_with(oob_kind::key, key_header{.address = own.address, .slot_distance = own.slot_distance},
                   tools::pack_key(context, own.memh));
}

remote_memory remote_memory::receive(oob_socket& peer, ucp_ep_h endpoint)
{
    const auto [header, key] = peer.receive_with<key_header>(oob_kind::key, max_key_length, "a remote key");
    remote_memory remote;
    remote._address       = header.address;
    remote._slot_distance = header.slot_distance;
    remote._key           = tools::unpack_key(endpoint, key);
    return remote;
}

remote_memory remote_memory::trade(session& session, const exposed_memory& own)
{
    send(session.peer(), session.context(), own);
    return receive(session.peer(), session.endpoint());
}

} // namespace ucxl::perf

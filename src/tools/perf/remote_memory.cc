#include "remote_memory.h"

#include "tools/common/failure.h"

#include <cstring>

namespace ucxl::perf
{

using tools::check;

namespace
{

constexpr std::size_t max_key_length = 1 << 16;

struct key_header {
    std::uint64_t address;
    std::uint64_t slot_distance;
};

std::vector<std::byte> pack_key(session& session, const exposed_memory& own)
{
    const key_header header{.address = own.address, .slot_distance = own.slot_distance};
    const auto header_bytes = std::as_bytes(std::span(&header, 1));
    std::vector<std::byte> message(header_bytes.begin(), header_bytes.end());
    void* key          = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(session.context(), own.memh, &key, &length), "ucp_rkey_pack");
    const std::unique_ptr<void, decltype(&ucp_rkey_buffer_release)> owned(key, ucp_rkey_buffer_release);
    const std::span bytes(static_cast<const std::byte*>(key), length);
    message.insert(message.end(), bytes.begin(), bytes.end());
    return message;
}

} // namespace

remote_memory remote_memory::trade(session& session, const exposed_memory& own)
{
    session.peer().send(oob_kind::key, pack_key(session, own));
    const std::vector<std::byte> message = session.peer().receive(oob_kind::key, max_key_length);
    key_header header{};
    if (message.size() <= sizeof(header)) {
        tools::give_up("{} sent a remote key of {} bytes", session.peer().peer_name(), message.size());
    }
    std::memcpy(&header, message.data(), sizeof(header));
    ucp_rkey_h key = nullptr;
    check(ucp_ep_rkey_unpack(session.endpoint(), message.data() + sizeof(header), &key), "ucp_ep_rkey_unpack");
    remote_memory remote;
    remote._address       = header.address;
    remote._slot_distance = header.slot_distance;
    remote._key           = rkey_handle(key);
    return remote;
}

} // namespace ucxl::perf

// Memory of the second process as the first one puts into it.
#pragma once

#include "bench/common/ucp_pair.h"
#include "support/check.h"

#include <cstring>
#include <memory>
#include <vector>

namespace ucxl::bench
{

struct own_memory {
    void* address;
    ucp_mem_h handle;
};

struct remote_memory {
    std::uint64_t address = 0;
    std::unique_ptr<ucp_rkey, decltype(&ucp_rkey_destroy)> key{nullptr, ucp_rkey_destroy};
};

// Both processes call it. The first one gets what the second one has.
inline remote_memory trade_memory(const ucp_pair& pair, bool is_first, const own_memory& own)
{
    std::vector<std::byte> mine(1); // the socket takes no empty messages
    if (!is_first) {
        void* packed       = nullptr;
        std::size_t length = 0;
        test::check_ok(ucp_rkey_pack(pair.context(), own.handle, &packed, &length), "ucp_rkey_pack");
        const auto address = reinterpret_cast<std::uint64_t>(own.address);
        mine.resize(sizeof(address) + length);
        std::memcpy(mine.data(), &address, sizeof(address));
        std::memcpy(mine.data() + sizeof(address), packed, length);
        ucp_rkey_buffer_release(packed);
    }
    const std::vector<std::byte> other = pair.trade(mine);
    remote_memory remote;
    if (is_first) {
        std::memcpy(&remote.address, other.data(), sizeof(remote.address));
        ucp_rkey_h key = nullptr;
        test::check_ok(ucp_ep_rkey_unpack(pair.peer(), other.data() + sizeof(remote.address), &key),
                       "ucp_ep_rkey_unpack");
        remote.key.reset(key);
    }
    return remote;
}

// Of a put: the flush after it says when it is there.
inline void free_when_done(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    } else {
        test::check_ok(UCS_PTR_STATUS(request), "ucp_put_nbx");
    }
}

inline ucs_status_ptr_t flush(const ucp_pair& pair)
{
    const ucp_request_param_t defaults{};
    return ucp_ep_flush_nbx(pair.peer(), &defaults);
}

} // namespace ucxl::bench

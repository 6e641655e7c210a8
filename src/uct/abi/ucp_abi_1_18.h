// The private interface of libucp, release 1.18, as far as we use it: the active message by which the target of a
// remote atomic is asked to do it in software. libucp exports the objects; a build that hides them leaves null.
//
// Invariant: nothing here is used before abi_check() said yes and knows_atomic_request() did.
#pragma once

#include <cstdint>

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

namespace ucxl::abi
{

// What libucp registers with every transport for one kind of message.
struct ucp_am_handler {
    std::uint64_t features; // UCP_FEATURE_*: any of them switches it on
    uct_am_callback_t cb;   // its first argument is the worker
    void* tracer;
    std::uint32_t flags;
    uct_am_callback_t proxy_cb; // the same for transports whose use is counted
};

// A request in the message; `length` bytes of operand follow, for a compare-and-swap as many of the new value.
struct [[gnu::packed]] atomic_request {
    std::uint64_t address;
    std::uint64_t ep_id;
    std::uint64_t req_id;
    std::uint8_t length; // 4 or 8
    std::uint8_t opcode; // uct_atomic_op_t
};

static_assert(sizeof(ucp_am_handler) == 40);
static_assert(sizeof(atomic_request) == 26);

} // namespace ucxl::abi

extern "C" {
[[gnu::weak]] extern ucxl::abi::ucp_am_handler ucp_am_handler_UCP_AM_ID_ATOMIC_REQ;
[[gnu::weak]] ucs_status_t ucp_atomic_req_handler(void* worker, void* data, std::size_t length, unsigned flags);
}

namespace ucxl::abi
{

// Whether `handler` is what libucp 1.18 has for atomic requests, unchanged. Null: it is not.
inline bool knows_atomic_request(const ucp_am_handler* handler)
{
    return handler != nullptr && handler->features == (UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64) &&
           handler->cb != nullptr && handler->cb == ucp_atomic_req_handler && handler->proxy_cb != nullptr;
}

} // namespace ucxl::abi

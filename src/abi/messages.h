// The active messages of libucp for remote access in software, the same in all releases that form.h knows. UCP puts,
// gets and does atomics with them where no transport of the initiator reaches the memory. libucp exports the objects; a
// build that hides them has none.
//
// Example: if (auto* handler = stock_handler("PUT", "ucp_put_handler", UCP_FEATURE_RMA)) { handler->cb = ours; }
#pragma once

#include <cstdint>

#include <ucp/api/ucp.h>
#include <ucs/memory/memory_type.h>
#include <uct/api/uct.h>

namespace ucxl::abi
{

// What libucp registers with every transport for one kind of message.
struct ucp_am_handler {
    std::uint64_t features; // UCP_FEATURE_*: any of them enables the handler
    uct_am_callback_t cb;   // its first argument is the worker
    void* tracer;
    std::uint32_t flags;
    uct_am_callback_t proxy_cb; // the same for transports whose use is counted
};

// The endpoint of the sender and the request to answer; 0 if there is no request.
struct [[gnu::packed]] request_header {
    std::uint64_t ep_id;
    std::uint64_t req_id;
};

// The bytes to write follow the header.
struct [[gnu::packed]] put_request {
    std::uint64_t address;
    std::uint64_t ep_id;
    std::uint32_t memory_type; // ucs_memory_type_t
};

struct [[gnu::packed]] get_request {
    std::uint64_t address;
    std::uint64_t length;
    request_header request;
    std::uint32_t memory_type;
};

// A part of the requested bytes follows the header.
struct [[gnu::packed]] get_reply {
    std::uint64_t req_id;
    std::uint64_t offset;
};

// `length` bytes of operand follow; for a compare-and-swap, as many bytes of the new value follow them.
struct [[gnu::packed]] atomic_request {
    std::uint64_t address;
    request_header request;
    std::uint8_t length; // 4 or 8
    std::uint8_t opcode; // uct_atomic_op_t
};

// Tells the sender of a rendezvous that it has ended.
struct [[gnu::packed]] end_of_rendezvous {
    std::uint64_t req_id;
    std::int8_t status; // ucs_status_t
};

static_assert(sizeof(ucs_memory_type_t) == sizeof(std::uint32_t));
static_assert(sizeof(ucs_status_t) == sizeof(std::int8_t));
static_assert(sizeof(ucp_am_handler) == 40);
static_assert(sizeof(request_header) == 16);
static_assert(sizeof(put_request) == 20);
static_assert(sizeof(get_request) == 36);
static_assert(sizeof(get_reply) == 16);
static_assert(sizeof(atomic_request) == 26);
static_assert(sizeof(end_of_rendezvous) == 9);

// Whether `handler` calls `function` for messages of (at least) these features. Null does not.
constexpr bool knows_handler(const ucp_am_handler* handler, std::uint64_t features, uct_am_callback_t function)
{
    return handler != nullptr && (handler->features & features) == features && handler->cb != nullptr &&
           handler->cb == function && handler->proxy_cb != nullptr;
}

// The object ucp_am_handler_UCP_AM_ID_<id> of the attached libucp, if it is known and still calls libucp's function of
// that name. Otherwise null.
ucp_am_handler* stock_handler(const char* id, const char* function, std::uint64_t features);

} // namespace ucxl::abi

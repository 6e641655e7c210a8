#include "remote_atomics.h"

#include "atomic_word.h"
#include "refusal.h"

#include "ucs/window/window.h"
#include "uct/abi/ucp_abi_1_18.h"

#include <algorithm>
#include <cstring>

namespace ucxl
{

namespace
{

// What libucp had registered.
uct_am_callback_t next_handler;
uct_am_callback_t next_proxy;

struct [[gnu::packed]] request_message {
    abi::atomic_request header;
    std::byte operands[2 * sizeof(std::uint64_t)];
};

// Does what the request says; the old value, 0 if it was refused. The section ends with it: what libucp does next may
// come to callbacks of the user, and those may unmap windows.
template <typename Word>
Word serve(const request_message& request)
{
    const auto* address = reinterpret_cast<const std::byte*>(request.header.address);
    const char* why     = "are not inside a live window";
    const reader_section guard;
    const window* in = window_registry::instance().find(address, sizeof(Word));
    std::byte* word  = nullptr;
    if (in != nullptr) {
        const window_binding& binding = in->binding();
        word                          = word_in(*binding.plan->source_layout(), binding.bases,
                                                static_cast<std::uint64_t>(address - in->address()), sizeof(Word), why);
    }
    if (word == nullptr) {
        report_refusal("remote atomic", address, sizeof(Word), why);
        return 0;
    }
    Word operands[2];
    std::memcpy(operands, request.operands, sizeof(operands));
    return apply(word, static_cast<uct_atomic_op_t>(request.header.opcode), operands[0], operands[1]);
}

template <typename Word>
ucs_status_t answer(uct_am_callback_t next, void* arg, request_message& request, std::size_t length, unsigned flags)
{
    Word old               = serve<Word>(request);
    request.header.address = reinterpret_cast<std::uintptr_t>(&old);
    return next(arg, &request, length, flags);
}

template <uct_am_callback_t& Next>
ucs_status_t handle_request(void* arg, void* data, std::size_t length, unsigned flags)
{
    request_message request{};
    if (length >= sizeof(request.header)) {
        std::memcpy(&request.header, data, sizeof(request.header));
    }
    const std::uint64_t address = request.header.address;
    const bool is_word          = request.header.length == 4 || request.header.length == 8;
    if (!window_registry::instance().in_arena(reinterpret_cast<const void*>(address)) || !is_word ||
        request.header.opcode >= UCT_ATOMIC_OP_LAST) {
        return Next(arg, data, length, flags); // of a request that makes no sense libucp touches no memory
    }
    const std::size_t copied = std::min(length, sizeof(request));
    std::memcpy(&request, data, copied);
    flags &= ~static_cast<unsigned>(UCT_CB_PARAM_FLAG_DESC); // the copy is no descriptor that could be kept
    return request.header.length == 4 ? answer<std::uint32_t>(Next, arg, request, copied, flags)
                                      : answer<std::uint64_t>(Next, arg, request, copied, flags);
}

} // namespace

bool serve_remote_atomics()
{
    abi::ucp_am_handler* handler = &ucp_am_handler_UCP_AM_ID_ATOMIC_REQ;
    if (!abi::knows_atomic_request(handler)) {
        return false;
    }
    next_handler      = handler->cb;
    next_proxy        = handler->proxy_cb;
    handler->cb       = handle_request<next_handler>;
    handler->proxy_cb = handle_request<next_proxy>;
    return true;
}

} // namespace ucxl

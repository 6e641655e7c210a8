#include "requests.h"

#include "uct/layout/base/atomic_word.h"
#include "uct/layout/base/failure.h"
#include "uct/layout/base/window_copy.h"

#include "abi/config.h"
#include "abi/messages.h"
#include "abi/muted_message.h"
#include "abi/window_types.h"
#include "ucs/window/window.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

namespace ucxl
{

namespace
{

// libucp has two forms of each handler: one gets the worker, the other gets the object that counts a transport's use.
enum handler_form { plain, counting };

using handler_pair = std::array<uct_am_callback_t, 2>;

// The first hook that needs them fills them in. By then the objects of libucp may hold our handlers.
struct stock_handlers {
    handler_pair put;
    handler_pair get;
    handler_pair atomic;
    handler_pair reply;
    handler_pair end_of_rendezvous;
    abi::ucp_am_handler* put_object;
    abi::ucp_am_handler* get_object;
    abi::ucp_am_handler* atomic_object;
    abi::ucp_am_handler* reply_object;
};

const stock_handlers* stock()
{
    static stock_handlers handlers{};
    static const bool is_known = [] {
        constexpr std::uint64_t atomics  = UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
        constexpr std::uint64_t messages = UCP_FEATURE_TAG | UCP_FEATURE_AM;
        auto* const put                  = abi::stock_handler("PUT", "ucp_put_handler", UCP_FEATURE_RMA);
        auto* const get                  = abi::stock_handler("GET_REQ", "ucp_get_req_handler", UCP_FEATURE_RMA);
        auto* const atomic               = abi::stock_handler("ATOMIC_REQ", "ucp_atomic_req_handler", atomics);
        auto* const reply                = abi::stock_handler("GET_REP", "ucp_get_rep_handler", UCP_FEATURE_RMA);
        auto* const end                  = abi::stock_handler("RNDV_ATS", "ucp_rndv_ats_handler", messages);
        if (put == nullptr || get == nullptr || atomic == nullptr || reply == nullptr || end == nullptr) {
            return false;
        }
        const auto pair_of = [](const abi::ucp_am_handler& known) { return handler_pair{known.cb, known.proxy_cb}; };
        handlers           = {pair_of(*put), pair_of(*get), pair_of(*atomic), pair_of(*reply), pair_of(*end), put, get,
                              atomic,        reply};
        return true;
    }();
    return is_known ? &handlers : nullptr;
}

// Tells the initiator of a put, or of an atomic without a result, about a refusal: a reply to a request that does not
// exist. libucp reads the body of a reply when it sends it, which may be much later, and does not tell when. So the
// number of the request has in it what differs, and the body is a constant:
//
//     number    from the top: the form (15 bits), the address at the target (48), 1 (1)
//     body      the length of the range, in 2 bytes for a put and in 1 byte for an atomic
//
// Real request numbers are pointers, or odd numbers counted up from 1. Whoever does not know the form, as stock UCX and
// this library before form 2, finds no request of that number and drops the reply; so do we with notices of form 1,
// numbered 0x6c61796f75744e31. Then only the target knows of the refusal.
struct notice {
    static constexpr unsigned address_bits = 48;
    static constexpr std::uint64_t form    = 0x5502;

    std::uint64_t address; // 0 for one that no process can have
    std::uint16_t length;
    bool is_atomic;

    std::uint64_t number() const { return form << (address_bits + 1) | address << 1 | 1; }
    const std::uint16_t* body() const
    {
        static const auto lengths = [] {
            std::array<std::uint16_t, std::numeric_limits<std::uint16_t>::max() + 1> all;
            std::iota(all.begin(), all.end(), std::uint16_t{0});
            return all;
        }();
        return &lengths[length];
    }
    std::size_t body_length() const { return is_atomic ? 1 : 2; }

    static notice of(const failure& refused)
    {
        constexpr std::uint64_t longest = std::numeric_limits<std::uint16_t>::max();
        return {refused.address >> address_bits == 0 ? refused.address : 0,
                static_cast<std::uint16_t>(std::min(refused.length, longest)),
                refused.kind == failure_kind::peer_atomic};
    }
    static bool has_number(std::uint64_t number) { return number >> (address_bits + 1) == form && number % 2 == 1; }
};

static_assert(std::endian::native == std::endian::little, "the first byte of a length is its low one");

template <handler_form Form>
void reply_with(void* arg, const abi::request_header& request, const void* bytes, std::uint64_t length)
{
    abi::get_request forged{reinterpret_cast<std::uintptr_t>(bytes), length, request, UCS_MEMORY_TYPE_HOST};
    stock()->get[Form](arg, &forged, sizeof(forged), 0);
}

// Makes a flush of the initiator complete.
template <handler_form Form>
void complete_remotely(void* arg, std::uint64_t ep_id)
{
    static std::byte nowhere;
    abi::put_request forged{reinterpret_cast<std::uintptr_t>(&nowhere), ep_id, UCS_MEMORY_TYPE_HOST};
    stock()->put[Form](arg, &forged, sizeof(forged), 0);
}

// Sends an empty reply to a request that awaits one, and a notice otherwise.
template <handler_form Form>
void refuse(void* arg, const abi::request_header& request, const failure& refused)
{
    static constexpr std::byte nothing{};
    report_failure(refused);
    if (request.req_id != 0) {
        reply_with<Form>(arg, request, &nothing, 0);
    } else {
        const notice told = notice::of(refused);
        reply_with<Form>(arg, {request.ep_id, told.number()}, told.body(), told.body_length());
    }
    complete_remotely<Form>(arg, request.ep_id);
}

bool is_ours(std::uint64_t address, std::uint64_t length, std::uint32_t memory_type)
{
    return abi::types_of_windows().serves(memory_type) ||
           window_registry::instance().touches_arena(reinterpret_cast<const void*>(address), length);
}

template <handler_form Form>
ucs_status_t handle_put(void* arg, void* data, std::size_t length, unsigned flags)
{
    abi::put_request header{};
    if (length >= sizeof(header)) {
        std::memcpy(&header, data, sizeof(header));
    }
    const std::uint64_t payload = length - std::min(length, sizeof(header));
    if (payload == 0 || !is_ours(header.address, payload, header.memory_type)) {
        return stock()->put[Form](arg, data, length, flags);
    }
    const auto* const bytes = static_cast<const std::byte*>(data) + sizeof(header);
    auto* const target      = reinterpret_cast<void*>(header.address);
    const auto refused = write_row(target, bytes, payload) ? std::nullopt : move_window(target, bytes, payload, target);
    if (refused) {
        refuse<Form>(arg, {header.ep_id, 0},
                     {failure_kind::peer_write, "put of a peer", header.address, payload, refused->reason, true});
    } else {
        complete_remotely<Form>(arg, header.ep_id);
    }
    return UCS_OK;
}

// Whether libucp's handler takes every address for host memory, as that of UCX's older protocols does. Sees the option
// of the process only, not that of a single context.
bool takes_windows_for_host_memory()
{
    static const bool answer = abi::has_old_protocols();
    return answer;
}

// Why libucp cannot serve the get, or null.
const char* refusal_of_get(const abi::get_request& request)
{
    const reader_section section;
    const window* const found =
        window_registry::instance().find(reinterpret_cast<const void*>(request.address), request.length);
    if (found == nullptr) {
        return not_in_a_window;
    }
    return takes_windows_for_host_memory() && !found->is_identity()
               ? "cannot be read with UCX_PROTO_ENABLE=n, by peers that have no other way"
               : nullptr;
}

template <handler_form Form>
ucs_status_t handle_get(void* arg, void* data, std::size_t length, unsigned flags)
{
    abi::get_request request{};
    if (length >= sizeof(request)) {
        std::memcpy(&request, data, sizeof(request));
    }
    if (request.length == 0 || !is_ours(request.address, request.length, request.memory_type)) {
        return stock()->get[Form](arg, data, length, flags);
    }
    if (const char* const reason = refusal_of_get(request)) {
        refuse<Form>(arg, request.request,
                     {failure_kind::peer_read, "get of a peer", request.address, request.length, reason, false});
        return UCS_OK;
    }
    // Whatever type the peer sent.
    request.memory_type = window_registry::instance().memory_type_at(reinterpret_cast<const void*>(request.address));
    return stock()->get[Form](arg, &request, sizeof(request), flags & ~static_cast<unsigned>(UCT_CB_PARAM_FLAG_DESC));
}

struct [[gnu::packed]] atomic_message {
    abi::atomic_request header;
    std::byte operands[2 * sizeof(std::uint64_t)];
};

// Executes the request. Returns null, or why it did not. Closes the section before libucp continues, because libucp may
// call callbacks of the user, which may unmap windows.
template <typename Word>
const char* serve(const atomic_message& request, Word& old)
{
    const auto* address = reinterpret_cast<const std::byte*>(request.header.address);
    const char* reason  = not_in_a_window;
    const reader_section section;
    const window* const found = window_registry::instance().find(address, sizeof(Word));
    if (found == nullptr) {
        return reason;
    }
    const window_binding& binding = found->binding();
    if (binding.is_indirect()) {
        return "are memory of a network card: only the card does atomics there";
    }
    const auto offset     = static_cast<std::uint64_t>(address - found->address());
    std::byte* const word = word_in(*binding.plan->source_layout(), binding.bases, offset, sizeof(Word), reason);
    if (word == nullptr) {
        return reason;
    }
    Word operands[2];
    std::memcpy(operands, request.operands, sizeof(operands));
    old = apply(word, static_cast<uct_atomic_op_t>(request.header.opcode), operands[0], operands[1]);
    return nullptr;
}

// libucp ends the process for an operation whose result nobody awaits, and that has one.
bool lacks_result(const abi::atomic_request& request)
{
    return request.request.req_id == 0 &&
           (request.opcode == UCT_ATOMIC_OP_SWAP || request.opcode == UCT_ATOMIC_OP_CSWAP);
}

template <handler_form Form, typename Word>
ucs_status_t answer(void* arg, atomic_message& request, std::size_t length, unsigned flags)
{
    Word old = 0;
    const char* const reason =
        lacks_result(request.header) ? "are swapped by a request that awaits no result" : serve(request, old);
    if (reason != nullptr) {
        const bool silent = request.header.request.req_id == 0;
        refuse<Form>(
            arg, request.header.request,
            {failure_kind::peer_atomic, "atomic of a peer", request.header.address, sizeof(Word), reason, silent});
        return UCS_OK;
    }
    request.header.address = reinterpret_cast<std::uintptr_t>(&old);
    // libucp takes it for an operation on memory that its peers change through a device.
    const abi::muted_message muted("Unsupported: got software atomic request");
    return stock()->atomic[Form](arg, &request, length, flags);
}

template <handler_form Form>
ucs_status_t handle_atomic(void* arg, void* data, std::size_t length, unsigned flags)
{
    atomic_message request{};
    if (length >= sizeof(request.header)) {
        std::memcpy(&request.header, data, sizeof(request.header));
    }
    const bool is_word = request.header.length == 4 || request.header.length == 8;
    if (!is_word || request.header.opcode >= UCT_ATOMIC_OP_LAST ||
        !is_ours(request.header.address, request.header.length, UCS_MEMORY_TYPE_HOST)) {
        return stock()->atomic[Form](arg, data, length, flags);
    }
    const std::size_t copied = std::min(length, sizeof(request));
    std::memcpy(&request, data, copied);
    flags &= ~static_cast<unsigned>(UCT_CB_PARAM_FLAG_DESC); // the copy is no descriptor that a callback could keep
    return request.header.length == 4 ? answer<Form, std::uint32_t>(arg, request, copied, flags)
                                      : answer<Form, std::uint64_t>(arg, request, copied, flags);
}

void take_notice(std::uint64_t number, std::span<const std::byte> body)
{
    notice told{.address   = number >> 1 & ((std::uint64_t{1} << notice::address_bits) - 1),
                .length    = 0,
                .is_atomic = body.size() == 1};
    if (body.size() == told.body_length()) {
        std::memcpy(&told.length, body.data(), body.size());
        report_failure({told.is_atomic ? failure_kind::remote_atomic : failure_kind::remote_write, "refused by a peer",
                        told.address, told.length,
                        "are not inside a live window there, or not a word; the request had ended", true});
    }
}

template <handler_form Form>
ucs_status_t handle_reply(void* arg, void* data, std::size_t length, unsigned flags)
{
    abi::get_reply header{};
    if (length < sizeof(header)) {
        return UCS_OK;
    }
    std::memcpy(&header, data, sizeof(header));
    if (notice::has_number(header.req_id)) {
        take_notice(header.req_id, std::span(static_cast<const std::byte*>(data), length).subspan(sizeof(header)));
        return UCS_OK;
    }
    if (length > sizeof(header)) {
        return stock()->reply[Form](arg, data, length, flags);
    }
    // Of all handlers that end a request by its number, only this one takes a status.
    abi::end_of_rendezvous refused{header.req_id, UCS_ERR_INVALID_ADDR};
    return stock()->end_of_rendezvous[Form](arg, &refused, sizeof(refused), 0);
}

template <uct_am_callback_t Plain, uct_am_callback_t Counting>
bool put_in_front(abi::ucp_am_handler* stock_handlers::* object)
{
    if (stock() == nullptr) {
        return false;
    }
    abi::ucp_am_handler* const handler = stock()->*object;
    handler->cb                        = Plain;
    handler->proxy_cb                  = Counting;
    return true;
}

} // namespace

bool hook_puts()
{
    return put_in_front<handle_put<plain>, handle_put<counting>>(&stock_handlers::put_object);
}

bool hook_gets()
{
    return put_in_front<handle_get<plain>, handle_get<counting>>(&stock_handlers::get_object);
}

bool hook_atomics()
{
    if (!put_in_front<handle_atomic<plain>, handle_atomic<counting>>(&stock_handlers::atomic_object)) {
        return false;
    }
    abi::allow_muted_messages();
    return true;
}

bool hook_replies()
{
    if (!put_in_front<handle_reply<plain>, handle_reply<counting>>(&stock_handlers::reply_object)) {
        return false;
    }
    // Also answers a refused atomic.
    stock()->reply_object->features |= UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    return true;
}

} // namespace ucxl

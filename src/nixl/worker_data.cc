// What an agent does for another one, and with it, where windows are not reached by puts and gets: it receives into its
// windows and sends from them.

#include "active_messages.h"
#include "log.h"
#include "outcome.h"
#include "worker.h"

#include <cstddef>
#include <functional>
#include <new>

namespace ucxl::nixl
{

namespace
{

// An operation of UCX, until it has ended.
struct operation {
    std::function<void(ucs_status_t)> then; // has what the operation uses
    std::string header{};
};

void end(void* request, ucs_status_t status, void* begun)
{
    const std::unique_ptr<operation> ended(static_cast<operation*>(begun));
    ucx()->request_free(request);
    try {
        ended->then(status);
    } catch (const std::bad_alloc&) {
        log_error("no memory to tell another agent the end of a piece");
    }
}

void end_received(void* request, ucs_status_t status, std::size_t /*length*/, void* begun)
{
    end(request, status, begun);
}

// UCX has begun it, or it has ended already.
ucs_status_t started(std::unique_ptr<operation> begun, ucs_status_ptr_t call)
{
    if (UCS_PTR_IS_PTR(call)) {
        begun.release();
        return UCS_INPROGRESS;
    }
    begun->then(UCS_PTR_STATUS(call));
    return UCS_PTR_STATUS(call);
}

ucp_request_param_t param_of(operation& begun, ucp_mem_h memory)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data    = &begun;
    if (memory != nullptr) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = memory;
    }
    return param;
}

ucp_request_param_t sending(operation& begun, ucp_mem_h memory)
{
    auto param = param_of(begun, memory);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags   = UCP_AM_SEND_FLAG_REPLY;
    param.cb.send = end;
    return param;
}

// Brings the bytes of a rendezvous to a window, or to contiguous memory.
ucs_status_t receive_rendezvous(ucp_worker_h worker, std::span<const std::byte> data, void* to, ucp_mem_h memory,
                                std::function<void(ucs_status_t)> then)
{
    auto receiving   = std::make_unique<operation>(std::move(then));
    auto param       = param_of(*receiving, memory);
    param.cb.recv_am = end_received;
    const auto call  = ucx()->am_recv_data(worker, const_cast<std::byte*>(data.data()), to, data.size(), &param);
    return started(std::move(receiving), call);
}

} // namespace

ucs_status_t worker::receive_data(void* self, const void* header, std::size_t header_length, void* data,
                                  std::size_t length, const ucp_am_recv_param_t* param)
{
    auto& receiver     = *static_cast<worker*>(self);
    const auto content = decode_data({static_cast<const char*>(header), header_length});
    if (!content || (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) {
        log_error("{} bytes xfer data without a header were received", length);
        return UCS_OK;
    }
    const bool is_rendezvous = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
    const std::span bytes(static_cast<const std::byte*>(data), length); // only named by a rendezvous
    try {
        const bool goes_on = content->window != 0 ? receiver.take_data(*content, bytes, is_rendezvous, param->reply_ep)
                                                  : receiver.take_fetched(*content, bytes, is_rendezvous);
        return goes_on ? UCS_INPROGRESS : UCS_OK;
    } catch (const std::bad_alloc&) {
        log_error("no memory to take {} bytes of another agent", length);
        return UCS_OK;
    }
}

// Into a window of this agent. Whether UCX still needs the data.
bool worker::take_data(const data_header& header, std::span<const std::byte> data, bool is_rendezvous, ucp_ep_h sender)
{
    const auto answer = [this, sender, number = header.piece](ucs_status_t status) {
        send(sender, {.kind = message_kind::moved, .status = status, .piece = number});
    };
    const auto to = _shown.find(header.sender, header.window, header.offset, data.size());
    if (to == nullptr) {
        answer(UCS_ERR_NO_ELEM);
        return false;
    }
    if (!is_rendezvous) {
        answer(to->layout.scatter(to->bases, header.offset, data));
        return false;
    }
    // The window stays until UCX has ended it: end_region() waits for that.
    return receive_rendezvous(_worker, data, static_cast<std::byte*>(to->window.address()) + header.offset,
                              to->window.memh(), [to, answer](ucs_status_t ended) {
                                  if (outcome_of(ended) != outcome::disconnected && ended != UCS_ERR_CANCELED) {
                                      answer(ended); // else the sender's endpoint may be gone
                                  }
                              }) == UCS_INPROGRESS;
}

// Out of a window of this agent.
void worker::send_fetched(const message& asked, ucp_ep_h to)
{
    const auto refuse = [this, to, number = asked.piece](ucs_status_t status) {
        send(to, {.kind = message_kind::moved, .status = status, .piece = number});
    };
    const auto from = _shown.find(asked.sender, asked.window, asked.address, asked.length);
    if (from == nullptr) {
        refuse(UCS_ERR_NO_ELEM);
        return;
    }
    auto sent        = std::make_unique<operation>([from](ucs_status_t /*status*/) {},
                                            encode(data_header{.sender = _instance, .piece = asked.piece}));
    const auto param = sending(*sent, from->window.memh());
    const auto call =
        ucx()->am_send(to, data_id, sent->header.data(), sent->header.size(),
                       static_cast<std::byte*>(from->window.address()) + asked.address, asked.length, &param);
    const auto status = started(std::move(sent), call);
    if (status != UCS_INPROGRESS && status != UCS_OK) {
        refuse(status);
    }
}

// Bytes that this agent has asked for. Whether UCX still needs the data.
bool worker::take_fetched(const data_header& header, std::span<const std::byte> data, bool is_rendezvous)
{
    const auto awaited = answered(header.piece, header.sender);
    if (awaited == nullptr) {
        return false; // its transfer has ended, or is with another agent
    }
    if (awaited->target == nullptr || data.size() != awaited->length) {
        awaited->note(UCS_ERR_INVALID_PARAM);
        return false;
    }
    const transfer& to = *awaited->target;
    if (!is_rendezvous) {
        awaited->note(to.local.layout->scatter(to.local.bases, awaited->offset, data));
        return false;
    }
    awaited->is_in_ucx = true;
    try {
        return receive_rendezvous(_worker, data, static_cast<std::byte*>(to.buffer.address) + awaited->offset,
                                  to.buffer.memh(), [awaited](ucs_status_t ended) {
                                      awaited->note(ended);
                                      awaited->is_in_ucx = false;
                                  }) == UCS_INPROGRESS;
    } catch (const std::bad_alloc&) {
        awaited->is_in_ucx = false;
        awaited->note(UCS_ERR_NO_MEMORY);
        return false;
    }
}

void worker::await_answer(const std::shared_ptr<piece>& to, const peer& answerer)
{
    to->number   = ++_last_number;
    to->answerer = answerer.instance;
    _pieces.emplace(to->number, to);
}

// The piece that is not awaited any more; null if it was not, or not from that agent. Numbers are easy to guess.
std::shared_ptr<piece> worker::answered(std::uint64_t number, std::uint64_t answerer)
{
    const auto found = _pieces.find(number);
    if (found == _pieces.end() || found->second->answerer != answerer) {
        return nullptr;
    }
    const auto ended = found->second;
    _pieces.erase(found);
    ended->number = 0;
    return ended;
}

// They will not come, or are of no interest.
void worker::await_no_answers(const std::vector<std::shared_ptr<piece>>& pieces)
{
    for (const auto& each : pieces) {
        answered(each->number, each->answerer);
    }
}

void worker::handle_moved(const message& answer)
{
    if (const auto awaited = answered(answer.piece, answer.sender); awaited != nullptr) {
        const auto status = told_end(answer.status);
        // Bytes that were asked for come as data; only their failure comes as a message.
        awaited->note(awaited->target != nullptr && status == UCS_OK ? UCS_ERR_INVALID_PARAM : status);
    }
}

// To a window of the other agent, which tells when the bytes are there.
void worker::send_piece(transfer& xfer, const std::shared_ptr<piece>& made)
{
    await_answer(made, *xfer.target);
    made->is_in_ucx = true;
    auto sent       = std::make_unique<operation>([made](ucs_status_t ended) {
        made->note(ended);
        made->is_in_ucx = false;
    });
    sent->header    = encode(
        data_header{.sender = _instance, .window = xfer.remote->number, .offset = made->offset, .piece = made->number});
    const auto param        = sending(*sent, xfer.buffer.memh());
    const void* const bytes = static_cast<std::byte*>(xfer.buffer.address) + made->offset;
    const auto call   = ucx()->am_send(xfer.target->endpoint, data_id, sent->header.data(), sent->header.size(), bytes,
                                       made->length, &param);
    const auto status = started(std::move(sent), call);
    if (status != UCS_INPROGRESS && status != UCS_OK) {
        answered(made->number, made->answerer);
    }
}

// From a window of the other agent.
void worker::fetch_piece(transfer& xfer, const std::shared_ptr<piece>& made)
{
    made->target = &xfer;
    await_answer(made, *xfer.target);
    send(*xfer.target, {.kind    = message_kind::fetch,
                        .window  = xfer.remote->number,
                        .address = made->offset,
                        .length  = made->length,
                        .piece   = made->number});
}

} // namespace ucxl::nixl

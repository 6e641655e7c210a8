// What an agent does for another one, or with it, if windows are not reached by puts and gets: it receives into its
// windows and sends from them.

#include "active_messages.h"
#include "log.h"
#include "worker.h"

#include <cstddef>
#include <functional>

namespace ucxl::nixl
{

namespace
{

// An operation of UCX on a window that was shown. The window stays until it has ended.
struct answering {
    std::shared_ptr<shown_window> window;
    std::function<void(ucs_status_t)> then;
    std::string header;
};

// Ends it.
void end_answer(void* request, ucs_status_t status, void* operation)
{
    const std::unique_ptr<answering> ended(static_cast<answering*>(operation));
    if (request != nullptr) {
        ucx()->request_free(request);
    }
    ended->then(status);
}

void end_receive(void* request, ucs_status_t status, std::size_t /*length*/, void* operation)
{
    end_answer(request, status, operation);
}

ucp_request_param_t param_of(void* operation, ucp_mem_h memory)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.user_data    = operation;
    if (memory != nullptr) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = memory;
    }
    return param;
}

void end_fetched(void* request, ucs_status_t status, std::size_t /*length*/, void* of)
{
    const std::unique_ptr<std::shared_ptr<piece>> ended(static_cast<std::shared_ptr<piece>*>(of));
    (*ended)->note(status);
    (*ended)->is_in_ucx = false;
    ucx()->request_free(request);
}

} // namespace

ucs_status_t worker::receive_data(void* self, const void* header, std::size_t header_length, void* data,
                                  std::size_t length, const ucp_am_recv_param_t* param)
{
    auto& receiver     = *static_cast<worker*>(self);
    const auto content = decode_data({static_cast<const char*>(header), header_length});
    if (!content || (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) {
        log_error("{} bytes of data without a header were received", length);
        return UCS_OK;
    }
    const bool is_taken = content->window != 0 ? receiver.take_data(*content, data, length, param->reply_ep)
                                               : receiver.take_fetched(*content, data, length);
    // A rendezvous goes on after the call.
    return is_taken && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 ? UCS_INPROGRESS : UCS_OK;
}

// Into a window of this agent.
bool worker::take_data(const data_header& header, void* data, std::size_t length, ucp_ep_h sender)
{
    const auto answer = [this, sender, number = header.piece](ucs_status_t status) {
        send(sender, {.kind = message_kind::moved, .status = status, .piece = number});
    };
    auto window = _shown.find(header.sender, header.window, header.offset, length);
    if (window == nullptr) {
        answer(UCS_ERR_NO_ELEM);
        return false;
    }
    std::byte* const to = static_cast<std::byte*>(window->window.address()) + header.offset;
    auto operation      = std::make_unique<answering>(
        window,
        [this, answer](ucs_status_t status) {
            --_answering;
            answer(status);
        },
        "");
    auto param       = param_of(operation.get(), window->window.memh());
    param.cb.recv_am = end_receive;
    ++_answering;
    const auto call = ucx()->am_recv_data(_worker, data, to, length, &param);
    if (UCS_PTR_IS_PTR(call)) {
        operation.release();
        return true;
    }
    end_answer(nullptr, UCS_PTR_STATUS(call), operation.release());
    return UCS_PTR_STATUS(call) == UCS_OK;
}

// Out of a window of this agent.
void worker::send_fetched(const message& asked, ucp_ep_h to)
{
    const auto refuse = [this, to, number = asked.piece](ucs_status_t status) {
        send(to, {.kind = message_kind::moved, .status = status, .piece = number});
    };
    auto window = _shown.find(asked.sender, asked.window, asked.address, asked.length);
    if (window == nullptr) {
        refuse(UCS_ERR_NO_ELEM);
        return;
    }
    auto operation = std::make_unique<answering>(
        window, [this](ucs_status_t /*status*/) { --_answering; },
        encode(data_header{.sender = _instance, .piece = asked.piece}));
    const auto& bytes   = operation->header;
    const auto* address = static_cast<const std::byte*>(window->window.address()) + asked.address;
    auto param          = param_of(operation.get(), window->window.memh());
    param.cb.send       = end_answer;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_AM_SEND_FLAG_REPLY;
    ++_answering;
    const auto call = ucx()->am_send(to, data_id, bytes.data(), bytes.size(), address, asked.length, &param);
    if (UCS_PTR_IS_PTR(call)) {
        operation.release();
        return;
    }
    end_answer(nullptr, UCS_PTR_STATUS(call), operation.release());
    if (UCS_PTR_STATUS(call) != UCS_OK) {
        refuse(UCS_PTR_STATUS(call));
    }
}

// Bytes that this agent has asked for.
bool worker::take_fetched(const data_header& header, void* data, std::size_t length)
{
    const auto found = _pieces.find(header.piece);
    if (found == _pieces.end()) {
        return false; // its transfer has ended
    }
    const auto awaited = found->second;
    _pieces.erase(found);
    awaited->is_answer_awaited = false;
    if (length != awaited->length || awaited->address == nullptr) {
        awaited->note(UCS_ERR_INVALID_PARAM);
        return false;
    }
    auto kept        = std::make_unique<std::shared_ptr<piece>>(awaited);
    auto param       = param_of(kept.get(), awaited->memory);
    param.cb.recv_am = end_fetched;
    const auto call  = ucx()->am_recv_data(_worker, data, awaited->address, length, &param);
    if (UCS_PTR_IS_PTR(call)) {
        awaited->is_in_ucx = true;
        kept.release();
        return true;
    }
    awaited->note(UCS_PTR_STATUS(call));
    return UCS_PTR_STATUS(call) == UCS_OK;
}

void worker::handle_moved(const message& answer)
{
    const auto found = _pieces.find(answer.piece);
    if (found == _pieces.end()) {
        return;
    }
    const auto status = static_cast<ucs_status_t>(answer.status);
    // A piece that was asked for ends by its bytes, unless there are none.
    found->second->note(found->second->address != nullptr && status == UCS_OK ? UCS_ERR_INVALID_PARAM : status);
    found->second->is_answer_awaited = false;
    _pieces.erase(found);
}

namespace
{

void end_sent(void* request, ucs_status_t status, void* of)
{
    const std::unique_ptr<std::shared_ptr<piece>> ended(static_cast<std::shared_ptr<piece>*>(of));
    (*ended)->note(status);
    (*ended)->is_in_ucx = false;
    ucx()->request_free(request);
}

} // namespace

// To a window of the other agent, which tells when the bytes are there.
void worker::send_piece(transfer& of, const std::shared_ptr<piece>& made)
{
    const std::uint64_t number = ++_last_number;
    // The header is read after the call, too, if it is long or the message waits.
    made->header =
        encode(data_header{.sender = _instance, .window = of.remote->number, .offset = of.started, .piece = number});
    auto kept     = std::make_unique<std::shared_ptr<piece>>(made);
    auto param    = param_of(kept.get(), of.window ? of.window->memh() : nullptr);
    param.cb.send = end_sent;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags     = UCP_AM_SEND_FLAG_REPLY;
    const auto call = ucx()->am_send(of.target->endpoint, data_id, made->header.data(), made->header.size(),
                                     static_cast<std::byte*>(of.address) + of.started, made->length, &param);
    if (UCS_PTR_IS_PTR(call)) {
        made->is_in_ucx = true;
        kept.release();
    } else {
        made->note(UCS_PTR_STATUS(call));
    }
    if (made->failure == UCS_OK) {
        made->is_answer_awaited = true;
        _pieces.emplace(number, made);
    }
}

// From a window of the other agent.
void worker::fetch_piece(transfer& of, const std::shared_ptr<piece>& made)
{
    const std::uint64_t number = ++_last_number;
    made->address              = static_cast<std::byte*>(of.address) + of.started;
    made->memory               = of.window ? of.window->memh() : nullptr;
    made->is_answer_awaited    = true;
    _pieces.emplace(number, made);
    send(of.target->endpoint, {.kind    = message_kind::fetch,
                               .window  = of.remote->number,
                               .address = of.started,
                               .length  = made->length,
                               .piece   = number});
}

} // namespace ucxl::nixl

#include "channel_am.h"

#include "tools/common/failure.h"

namespace ucxl::perf
{

namespace
{

constexpr unsigned am_id = 1;

void set_handler(ucp_worker_h worker, ucp_am_recv_callback_t callback, void* arg)
{
    ucp_am_handler_param_t param{};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = am_id;
    // Lets ucp_am_recv_data_nbx() take messages that came inline.
    param.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    param.cb    = callback;
    param.arg   = arg;
    tools::check(ucp_worker_set_am_recv_handler(worker, &param), "ucp_worker_set_am_recv_handler");
}

} // namespace

am_channel::am_channel(session& session, method& method, unsigned slots)
    : _session(session), _method(method), _slots(slots)
{
}

am_channel::~am_channel()
{
    ucp_am_handler_param_t none{};
    none.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    none.id         = am_id;
    ucp_worker_set_am_recv_handler(_session.worker(), &none);
}

ucs_status_ptr_t am_channel::send(const wire_buffer& buffer)
{
    const ucp_request_param_t param = param_of(buffer);
    return ucp_am_send_nbx(_session.endpoint(), am_id, nullptr, 0, buffer.address, buffer.count, &param);
}

void am_channel::begin_receive(std::uint64_t /*count*/)
{
    // Exchanges of other methods use the same id in turn.
    set_handler(_session.worker(), on_message, this);
    _arrivals.clear();
    _received  = 0;
    _looked_at = 0;
}

void am_channel::receive()
{
    _session.progress_until([this] {
        start_rendezvous();
        return !_arrivals.empty();
    });
    if (_failed != UCS_OK) {
        tools::give_up("receiving an active message: {}", ucs_status_string(_failed));
    }
    const arrival next  = _arrivals.front();
    const unsigned slot = slot_of(_received);
    if (next.data != nullptr) {
        _session.finish(next.request, "ucp_am_recv_data_nbx");
        _method.after_receive(slot);
    }
    _arrivals.pop_front();
    ++_received;
    start_rendezvous();
}

// Starts as many receives as there are free slots.
void am_channel::start_rendezvous()
{
    while (_looked_at < _received + _arrivals.size() && _looked_at < _received + _slots) {
        arrival& next = _arrivals[_looked_at - _received];
        if (next.data != nullptr && !next.started) {
            next.started = true;
            next.request = receive_into(_method.incoming(slot_of(_looked_at)), next.data);
        }
        ++_looked_at;
    }
}

ucs_status_ptr_t am_channel::receive_into(const wire_buffer& buffer, void* data)
{
    const ucp_request_param_t param = param_of(buffer);
    return ucp_am_recv_data_nbx(_session.worker(), data, buffer.address, buffer.count, &param);
}

ucs_status_t am_channel::on_message(void* arg, const void* /*header*/, std::size_t /*header_length*/, void* data,
                                    std::size_t length, const ucp_am_recv_param_t* param)
{
    auto* const self = static_cast<am_channel*>(arg);
    try {
        return self->place(data, length, (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
    } catch (const std::bad_alloc&) {
        self->_failed = UCS_ERR_NO_MEMORY;
        return UCS_OK;
    }
}

ucs_status_t am_channel::place(void* data, std::size_t length, bool is_rendezvous)
{
    if (length != _method.destination().packed_length()) {
        _failed = UCS_ERR_MESSAGE_TRUNCATED;
    }
    if (is_rendezvous && _failed == UCS_OK) {
        _arrivals.push_back({.data = data});
        return UCS_INPROGRESS; // keeps the descriptor
    }
    _arrivals.push_back({.data = nullptr});
    if (_failed != UCS_OK || _method.take(data)) {
        return UCS_OK;
    }
    // Slot 0 is always free: only methods that take() have more than one buffer.
    const ucs_status_ptr_t request = receive_into(_method.incoming(0), data);
    if (UCS_PTR_IS_ERR(request)) {
        _failed = UCS_PTR_STATUS(request);
    } else if (UCS_PTR_IS_PTR(request)) {
        _arrivals.back() = {.data = data, .started = true, .request = request};
        return UCS_INPROGRESS;
    } else {
        _method.after_receive(0);
    }
    return UCS_OK;
}

} // namespace ucxl::perf

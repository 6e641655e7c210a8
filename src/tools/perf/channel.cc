#include "channel.h"

#include "channel_am.h"
#include "exchange.h"
#include "tools/common/failure.h"

#include <vector>

namespace ucxl::perf
{

namespace
{

// Posts receives before the message comes: one request per slot, in order.
class posted_channel : public channel
{
public:
    posted_channel(session& session, method& method, unsigned slots)
        : _session(session), _method(method), _requests(slots)
    {
    }

    void begin_receive(std::uint64_t count) override
    {
        _posted   = 0;
        _received = 0;
        _count    = count;
        while (_posted < std::min<std::uint64_t>(_count, _requests.size())) {
            post_next();
        }
    }

    void receive() override
    {
        const unsigned slot = slot_of(_received++);
        _session.finish(std::exchange(_requests[slot], nullptr), "receive");
        _method.after_receive(slot);
        if (_posted < _count) {
            post_next();
        }
    }

protected:
    virtual ucs_status_ptr_t post(const wire_buffer& buffer) = 0;
    session& own_session() { return _session; }

private:
    unsigned slot_of(std::uint64_t message) const { return static_cast<unsigned>(message % _requests.size()); }

    void post_next()
    {
        const unsigned slot = slot_of(_posted++);
        _requests[slot]     = post(_method.incoming(slot));
    }

    session& _session;
    method& _method;
    std::vector<ucs_status_ptr_t> _requests;
    std::uint64_t _count    = 0;
    std::uint64_t _posted   = 0;
    std::uint64_t _received = 0;
};

class tag_channel : public posted_channel
{
public:
    using posted_channel::posted_channel;

    ucs_status_ptr_t send(const wire_buffer& buffer) override
    {
        const ucp_request_param_t param = param_of(buffer);
        return ucp_tag_send_nbx(own_session().endpoint(), buffer.address, buffer.count, tag_data, &param);
    }

protected:
    ucs_status_ptr_t post(const wire_buffer& buffer) override
    {
        const ucp_request_param_t param = param_of(buffer);
        return ucp_tag_recv_nbx(own_session().worker(), buffer.address, buffer.count, tag_data, UINT64_MAX, &param);
    }
};

class stream_channel : public posted_channel
{
public:
    using posted_channel::posted_channel;

    ucs_status_ptr_t send(const wire_buffer& buffer) override
    {
        const ucp_request_param_t param = param_of(buffer);
        return ucp_stream_send_nbx(own_session().endpoint(), buffer.address, buffer.count, &param);
    }

protected:
    ucs_status_ptr_t post(const wire_buffer& buffer) override
    {
        ucp_request_param_t param = param_of(buffer);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags        = UCP_STREAM_RECV_FLAG_WAITALL;
        std::size_t length = 0;
        return ucp_stream_recv_nbx(own_session().endpoint(), buffer.address, buffer.count, &length, &param);
    }
};

} // namespace

ucp_request_param_t param_of(const wire_buffer& buffer)
{
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype     = buffer.datatype;
    if (buffer.memh != nullptr) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
        param.memh = buffer.memh;
    }
    return param;
}

std::unique_ptr<channel> make_channel(carrier kind, session& session, method& method, unsigned slots)
{
    if (kind == carrier::tag) {
        return std::make_unique<tag_channel>(session, method, slots);
    }
    if (kind == carrier::stream) {
        return std::make_unique<stream_channel>(session, method, slots);
    }
    return std::make_unique<am_channel>(session, method, slots);
}

} // namespace ucxl::perf

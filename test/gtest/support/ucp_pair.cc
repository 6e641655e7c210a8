#include "ucp_pair.h"

#include <cstring>

#include <poll.h>

namespace ucxl::test
{

namespace
{

constexpr unsigned am_id = 7;

ucp_request_param_t no_params()
{
    ucp_request_param_t param;
    param.op_attr_mask = 0;
    return param;
}

} // namespace

ucp_pair::ucp_pair(const ucp_options& options) : _self(options.self), _wakeup(options.wakeup)
{
    context_options context{.config = options.config, .for_threads = options.thread_mode == UCS_THREAD_MODE_MULTI};
    context.features |= options.wakeup ? UCP_FEATURE_WAKEUP : 0;
    for (unsigned i = 0; i < (_self ? 1 : 2); ++i) {
        _sides[i].context = open_context(context);
        _sides[i].worker  = open_worker(_sides[i].context, options.thread_mode);
    }
    for (unsigned i = 0; i < (_self ? 1 : 2); ++i) {
        _sides[i].ep = connect(_sides[i].worker, address_of(worker(1 - i)));
    }
    ucp_am_handler_param_t handler;
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id         = am_id;
    handler.cb         = on_am;
    handler.arg        = this;
    check_ok(ucp_worker_set_am_recv_handler(worker(1), &handler), "ucp_worker_set_am_recv_handler");
}

ucp_pair::~ucp_pair()
{
    ucp_request_param_t param = no_params();
    ucs_status_ptr_t closing[2];
    for (std::size_t i = 0; i < 2; ++i) {
        closing[i] = _sides[i].ep != nullptr ? ucp_ep_close_nbx(_sides[i].ep, &param) : nullptr;
    }
    for (ucs_status_ptr_t request : closing) {
        (void)finish(request);
    }
    for (side& one : _sides) {
        if (one.worker != nullptr) {
            ucp_worker_destroy(one.worker);
        }
        if (one.context != nullptr) {
            ucp_cleanup(one.context);
        }
    }
}

void ucp_pair::progress()
{
    unsigned count = ucp_worker_progress(worker(0));
    count += ucp_worker_progress(worker(1));
    if (!_wakeup || count > 0) {
        return;
    }
    pollfd fds[2]{};
    for (unsigned i = 0; i < 2; ++i) {
        if (ucp_worker_get_efd(worker(i), &fds[i].fd) != UCS_OK || ucp_worker_arm(worker(i)) != UCS_OK) {
            return;
        }
        fds[i].events = POLLIN;
    }
    poll(fds, 2, 100);
}

ucs_status_t ucp_pair::finish(ucs_status_ptr_t request)
{
    return test::finish(request, [this] { progress(); });
}

ucs_status_t ucp_pair::transfer(const ucp_buffer& from, const ucp_buffer& to, ucp_tag_t tag)
{
    ucp_request_param_t param = no_params();
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype            = to.datatype;
    ucs_status_ptr_t receive  = ucp_tag_recv_nbx(worker(1), to.buffer, to.count, tag, ~ucp_tag_t{0}, &param);
    param.datatype            = from.datatype;
    ucs_status_ptr_t send     = ucp_tag_send_nbx(ep(0), from.buffer, from.count, tag, &param);
    const auto sent           = finish(send);
    const auto received       = finish(receive);
    return sent != UCS_OK ? sent : received;
}

ucs_status_t ucp_pair::send_tag(const void* from, void* to, std::size_t length)
{
    return transfer(contiguous(const_cast<void*>(from), length), contiguous(to, length));
}

ucs_status_t ucp_pair::send_stream(const void* from, void* to, std::size_t length)
{
    if (length == 0) {
        return UCS_OK;
    }
    ucp_request_param_t param = no_params();
    ucs_status_ptr_t send     = ucp_stream_send_nbx(ep(0), from, length, &param);
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags               = UCP_STREAM_RECV_FLAG_WAITALL;
    std::size_t received_length;
    ucs_status_ptr_t receive = ucp_stream_recv_nbx(ep(1), to, length, &received_length, &param);
    const auto sent          = finish(send);
    const auto received      = finish(receive);
    return sent != UCS_OK ? sent : received;
}

ucs_status_t ucp_pair::on_am(void* arg, const void*, std::size_t, void* data, std::size_t length,
                             const ucp_am_recv_param_t* param)
{
    auto* self                   = static_cast<ucp_pair*>(arg);
    self->_am.arrived            = true;
    ucp_request_param_t receives = no_params();
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        self->_am.rx = ucp_am_recv_data_nbx(self->worker(1), data, self->_am.to, length, &receives);
        return UCS_INPROGRESS;
    }
    std::memcpy(self->_am.to, data, length);
    return UCS_OK;
}

ucs_status_t ucp_pair::send_am(const void* from, void* to, std::size_t length, bool rendezvous)
{
    _am                       = {to, length, false, nullptr};
    ucp_request_param_t param = no_params();
    param.op_attr_mask        = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags               = rendezvous ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
    ucs_status_ptr_t send     = ucp_am_send_nbx(ep(0), am_id, nullptr, 0, from, length, &param);
    while (!_am.arrived) {
        progress();
    }
    const auto sent     = finish(send);
    const auto received = finish(_am.rx);
    return sent != UCS_OK ? sent : received;
}

ucs_status_t ucp_pair::access(bool is_put, const void* from, void* to, std::size_t length, ucs_memory_type_t type)
{
    void* remote = is_put ? to : const_cast<void*>(from);
    ucp_mem_map_params_t params;
    params.field_mask =
        UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address     = remote;
    params.length      = length + 1;
    params.memory_type = type;
    ucp_mem_h memh;
    check_ok(ucp_mem_map(context(1), &params, &memh), "ucp_mem_map");
    key_handle key = unpack_key(ep(0), pack_key(context(1), memh));

    ucp_request_param_t param = no_params();
    const auto address        = reinterpret_cast<std::uint64_t>(remote);
    auto status               = finish(is_put ? ucp_put_nbx(ep(0), from, length, address, key.get(), &param)
                                              : ucp_get_nbx(ep(0), to, length, address, key.get(), &param));
    if (status == UCS_OK) {
        status = finish(ucp_ep_flush_nbx(ep(0), &param));
    }
    key.reset();
    check_ok(ucp_mem_unmap(context(1), memh), "ucp_mem_unmap");
    return status;
}

ucs_status_t ucp_pair::put(const void* from, void* to, std::size_t length, ucs_memory_type_t type)
{
    return access(true, from, to, length, type);
}

ucs_status_t ucp_pair::get(const void* from, void* to, std::size_t length, ucs_memory_type_t type)
{
    return access(false, from, to, length, type);
}

} // namespace ucxl::test

// A worker with an endpoint to itself, and blocking tag send + receive over it. Threads that share one (thread mode
// MULTI) use tags of their own.
#pragma once

#include "context.h"

namespace ucxl::test
{

struct side {
    void* buffer;
    std::size_t count;
    ucp_datatype_t datatype;
};

inline side contiguous(void* buffer, std::size_t length)
{
    return {buffer, length, ucp_dt_make_contig(1)};
}

class loopback
{
public:
    explicit loopback(ucs_thread_mode_t mode = UCS_THREAD_MODE_SINGLE)
        : _context(nullptr, mode == UCS_THREAD_MODE_MULTI)
    {
        ucp_worker_params_t worker_params{};
        worker_params.field_mask  = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker_params.thread_mode = mode;
        EXPECT_EQ(ucp_worker_create(_context.get(), &worker_params, &_worker), UCS_OK);
        ucp_worker_attr_t attr{};
        attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
        EXPECT_EQ(ucp_worker_query(_worker, &attr), UCS_OK);
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address    = attr.address;
        EXPECT_EQ(ucp_ep_create(_worker, &params, &_ep), UCS_OK);
        ucp_worker_release_address(_worker, attr.address);
    }
    loopback(const loopback&)            = delete;
    loopback& operator=(const loopback&) = delete;
    ~loopback()
    {
        ucp_request_param_t param{};
        wait(ucp_ep_close_nbx(_ep, &param));
        ucp_worker_destroy(_worker);
    }

    ucp_context_h context() const { return _context.get(); }

    // What UCX gave: less than asked for where it was built without threads.
    ucs_thread_mode_t thread_mode() const
    {
        ucp_worker_attr_t attr{};
        attr.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE;
        EXPECT_EQ(ucp_worker_query(_worker, &attr), UCS_OK);
        return attr.thread_mode;
    }

    // The status of the receive; the send must succeed.
    ucs_status_t transfer(const side& from, const side& to, ucp_tag_t tag = 1)
    {
        ucp_request_param_t param{};
        param.op_attr_mask  = UCP_OP_ATTR_FIELD_DATATYPE;
        param.datatype      = to.datatype;
        auto* const receive = ucp_tag_recv_nbx(_worker, to.buffer, to.count, tag, ~ucp_tag_t{0}, &param);
        param.datatype      = from.datatype;
        EXPECT_EQ(wait(ucp_tag_send_nbx(_ep, from.buffer, from.count, tag, &param)), UCS_OK);
        return wait(receive);
    }

    ucs_status_t wait(ucs_status_ptr_t request)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request);
        }
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(_worker);
        }
        const auto status = ucp_request_check_status(request);
        ucp_request_free(request);
        return status;
    }

private:
    class context _context;
    ucp_worker_h _worker = nullptr;
    ucp_ep_h _ep         = nullptr;
};

} // namespace ucxl::test

#include "lay_copy_ep.h"

#include "transfer.h"

#include <cstring>
#include <new>

namespace ucxl
{

namespace
{

// UCP stages fragments with the short operations and ends the process (ucs_fatal) if one fails. A window that
// is gone must not do that, least of all because of what a peer sent; so they log, drop what was to be written or read
// zeros, and succeed. The zero-copy operations can and do report the error.
ucs_status_t put_short(uct_ep_h, const void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t)
{
    (void)transfer(reinterpret_cast<void*>(remote), buffer, length);
    return UCS_OK;
}

ucs_status_t get_short(uct_ep_h, void* buffer, unsigned length, std::uint64_t remote, uct_rkey_t)
{
    if (!transfer(buffer, reinterpret_cast<const void*>(remote), length)) {
        std::memset(buffer, 0, length);
    }
    return UCS_OK;
}

ucs_status_t put_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (!transfer(reinterpret_cast<void*>(remote), iov[i].buffer, iov[i].length)) {
            return UCS_ERR_INVALID_ADDR;
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

ucs_status_t get_zcopy(uct_ep_h, const uct_iov_t* iov, std::size_t num_iov, std::uint64_t remote, uct_rkey_t,
                       uct_completion_t*)
{
    for (std::size_t i = 0; i < num_iov; ++i) {
        if (!transfer(iov[i].buffer, reinterpret_cast<const void*>(remote), iov[i].length)) {
            return UCS_ERR_INVALID_ADDR;
        }
        remote += iov[i].length;
    }
    return UCS_OK;
}

ucs_status_t pending_add(uct_ep_h, uct_pending_req_t*, unsigned)
{
    return UCS_ERR_BUSY;
} // nothing is ever held up

void pending_purge(uct_ep_h, uct_pending_purge_callback_t, void*)
{
}

ucs_status_t ep_create(const uct_ep_params_t* params, uct_ep_h* ep)
{
    auto* self = new (std::nothrow) abi::base_ep{};
    if (self == nullptr) {
        return UCS_ERR_NO_MEMORY;
    }
    int init_count = 1;
    const auto status =
        uct_base_ep_t_init(self, &uct_base_ep_t_class, &init_count, reinterpret_cast<abi::base_iface*>(params->iface));
    if (status != UCS_OK) {
        ucs_class_call_cleanup_chain(&uct_base_ep_t_class, self, init_count);
        delete self;
        return status;
    }
    *ep = &self->super;
    return UCS_OK;
}

void ep_destroy(uct_ep_h ep)
{
    auto* self = reinterpret_cast<abi::base_ep*>(ep);
    ucs_class_call_cleanup_chain(&uct_base_ep_t_class, self, -1);
    delete self;
}

} // namespace

void lay_copy_ep_ops(uct_iface_ops_t& ops)
{
    ops.ep_put_short     = put_short;
    ops.ep_get_short     = get_short;
    ops.ep_put_zcopy     = put_zcopy;
    ops.ep_get_zcopy     = get_zcopy;
    ops.ep_pending_add   = pending_add;
    ops.ep_pending_purge = pending_purge;
    ops.ep_flush         = uct_base_ep_flush;
    ops.ep_fence         = uct_base_ep_fence;
    ops.ep_create        = ep_create;
    ops.ep_destroy       = ep_destroy;
}

} // namespace ucxl

#include "base_endpoint.h"

#include <new>

namespace ucxl
{

namespace
{

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

void base_endpoint_ops(uct_iface_ops_t& ops)
{
    ops.ep_pending_add   = pending_add;
    ops.ep_pending_purge = pending_purge;
    ops.ep_flush         = uct_base_ep_flush;
    ops.ep_fence         = uct_base_ep_fence;
    ops.ep_create        = ep_create;
    ops.ep_destroy       = ep_destroy;
}

} // namespace ucxl

// The component through stock UCT, without UCP: its memory domain, an interface of lay_copy, and an endpoint to itself.
#pragma once

#include "support/log_guard.h"

#include <vector>

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

namespace ucxl::test
{

// A memory domain, an interface of one of its transports, and an endpoint to that.
class transport_test : public ucx_test
{
protected:
    // The memory domain has the name of its device.
    void open_transport(uct_component_h component, const char* device, const char* transport);
    void TearDown() override;

    uct_md_h md       = nullptr;
    uct_iface_h iface = nullptr;
    uct_ep_h ep       = nullptr;

private:
    ucs_async_context_t* _async = nullptr;
    uct_worker_h _worker        = nullptr;
};

class uct_iface_test : public transport_test
{
protected:
    void SetUp() override;

    uct_component_h component = nullptr;
};

// The components named `layout` that UCX knows.
std::vector<uct_component_h> layout_components();

} // namespace ucxl::test

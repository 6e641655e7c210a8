// A plugin that uses UCX and no MPI: a context, a worker, and a datatype with functions of its own.
#include <cstdio>
#include <ucp/api/ucp.h>

namespace
{

void* start_pack(void* context, const void* /*buffer*/, size_t /*count*/)
{
    return context;
}

void* start_unpack(void* context, void* /*buffer*/, size_t /*count*/)
{
    return context;
}

size_t packed_size(void* /*state*/)
{
    return 0;
}

size_t pack(void* /*state*/, size_t /*offset*/, void* /*to*/, size_t /*length*/)
{
    return 0;
}

ucs_status_t unpack(void* /*state*/, size_t /*offset*/, const void* /*from*/, size_t /*length*/)
{
    return UCS_OK;
}

void finish(void* /*state*/)
{
}

} // namespace

extern "C" int ucx_calls(int* /*argc*/, char*** /*argv*/)
{
    ucp_params_t params{};
    params.field_mask     = UCP_PARAM_FIELD_FEATURES;
    params.features       = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    ucp_worker_h worker   = nullptr;
    const ucp_worker_params_t worker_params{};
    const ucp_generic_dt_ops_t operations{start_pack, start_unpack, packed_size, pack, unpack, finish};
    ucp_datatype_t datatype = 0;
    if (ucp_init(&params, nullptr, &context) != UCS_OK ||
        ucp_worker_create(context, &worker_params, &worker) != UCS_OK ||
        ucp_dt_create_generic(&operations, nullptr, &datatype) != UCS_OK) {
        return 1;
    }
    ucp_dt_destroy(datatype);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    std::puts("UCX works");
    return 0;
}

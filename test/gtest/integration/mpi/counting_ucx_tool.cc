// Stands between MPI and UCX, and counts of which messages MPI says what memory their buffers are. Preloaded.
#include <atomic>
#include <cstdio>
#include <dlfcn.h>
#include <ucp/api/ucp.h>

namespace
{

std::atomic<long> num_all{0}, num_told{0};

void count(const ucp_request_param_t* param)
{
    ++num_all;
    num_told +=
        (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE) != 0 && param->memory_type == UCS_MEMORY_TYPE_HOST;
}

[[gnu::destructor]] void print()
{
    if (num_all > 0) {
        std::printf("of %s messages memory is told\n", num_told == 0 ? "no" : num_told == num_all ? "all" : "some");
    }
}

} // namespace

extern "C" ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h endpoint, const void* buffer, std::size_t length, ucp_tag_t tag,
                                             const ucp_request_param_t* param)
{
    static const auto next = reinterpret_cast<decltype(&ucp_tag_send_nbx)>(dlsym(RTLD_NEXT, "ucp_tag_send_nbx"));
    count(param);
    return next(endpoint, buffer, length, tag, param);
}

extern "C" ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void* buffer, std::size_t length, ucp_tag_t tag,
                                             ucp_tag_t tag_mask, const ucp_request_param_t* param)
{
    static const auto next = reinterpret_cast<decltype(&ucp_tag_recv_nbx)>(dlsym(RTLD_NEXT, "ucp_tag_recv_nbx"));
    count(param);
    return next(worker, buffer, length, tag, tag_mask, param);
}

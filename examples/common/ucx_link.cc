#include "ucx_link.h"

#include "check.h"

#include <algorithm>

#include <sched.h>

namespace examples
{

owned_context open_context(std::uint64_t features)
{
    ucp_config_t* config = nullptr;
    check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    ucp_params_t params{};
    params.field_mask    = UCP_PARAM_FIELD_FEATURES;
    params.features      = features;
    ucp_context_h result = nullptr;
    // UCX warns of programs that were compiled with a newer UCX.
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    const auto status =
        ucp_init_version(UCP_API_MAJOR, std::min<unsigned>(UCP_API_MINOR, minor), &params, config, &result);
    ucp_config_release(config);
    check(status, "ucp_init");
    return owned_context(result);
}

owned_worker open_worker(ucp_context_h context)
{
    ucp_worker_params_t params{};
    params.field_mask   = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode  = UCS_THREAD_MODE_SINGLE;
    ucp_worker_h result = nullptr;
    check(ucp_worker_create(context, &params, &result), "ucp_worker_create");
    return owned_worker(result);
}

std::unique_ptr<ucx_link> ucx_link::create(team& all)
{
    auto link      = std::unique_ptr<ucx_link>(new ucx_link(all));
    link->_context = open_context(UCP_FEATURE_TAG | UCP_FEATURE_RMA);
    link->_worker  = open_worker(link->_context.get());

    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    check(ucp_worker_get_address(link->_worker.get(), &address, &length), "ucp_worker_get_address");
    const std::string mine(reinterpret_cast<const char*>(address), length);
    ucp_worker_release_address(link->_worker.get(), address);

    all.while_waiting([ptr = link.get()] { ucp_worker_progress(ptr->_worker.get()); });
    const std::vector<std::string> addresses = all.gather(mine);
    for (unsigned rank = 0; rank < all.size(); ++rank) {
        ucp_ep_h endpoint = nullptr; // no endpoint to itself
        if (rank == all.rank()) {
            link->_endpoints.push_back(endpoint);
            continue;
        }
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address    = reinterpret_cast<const ucp_address_t*>(addresses[rank].data());
        check(ucp_ep_create(link->_worker.get(), &params, &endpoint), "ucp_ep_create");
        link->_endpoints.push_back(endpoint);
    }
    return link;
}

ucx_link::~ucx_link()
{
    _team.while_waiting([] {});
}

ucs_status_ptr_t ucx_link::send(unsigned to, const void* buffer, std::size_t length_bytes, ucp_tag_t tag)
{
    const ucp_request_param_t defaults{};
    return ucp_tag_send_nbx(_endpoints[to], buffer, length_bytes, tag, &defaults);
}

ucs_status_ptr_t ucx_link::receive(void* buffer, std::size_t length_bytes, ucp_tag_t tag)
{
    const ucp_request_param_t defaults{};
    return ucp_tag_recv_nbx(_worker.get(), buffer, length_bytes, tag, ~ucp_tag_t{0}, &defaults);
}

ucs_status_ptr_t ucx_link::put(unsigned to, const void* buffer, std::size_t length_bytes, std::uint64_t remote_address,
                               ucp_rkey_h remote_key)
{
    const ucp_request_param_t defaults{};
    return ucp_put_nbx(_endpoints[to], buffer, length_bytes, remote_address, remote_key, &defaults);
}

ucs_status_ptr_t ucx_link::flush(unsigned to)
{
    const ucp_request_param_t defaults{};
    return ucp_ep_flush_nbx(_endpoints[to], &defaults);
}

void ucx_link::progress()
{
    // Examples usually run more processes than there are cores. When nothing moves, give way and check on the others.
    constexpr unsigned spins = 2000;
    if (ucp_worker_progress(_worker.get()) != 0) {
        _idle_rounds = 0;
    } else if (++_idle_rounds % spins == 0) {
        _team.check_alive();
        sched_yield();
    }
}

void ucx_link::wait(ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        check(UCS_PTR_STATUS(request), "UCX operation");
        return;
    }
    ucs_status_t status = UCS_INPROGRESS;
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        progress();
    }
    ucp_request_free(request);
    check(status, "UCX operation");
}

void ucx_link::close()
{
    _team.barrier();
    std::vector<ucs_status_ptr_t> closing;
    for (const ucp_ep_h endpoint : _endpoints) {
        const ucp_request_param_t defaults{};
        if (endpoint != nullptr) {
            closing.push_back(ucp_ep_close_nbx(endpoint, &defaults));
        }
    }
    _endpoints.clear();
    for (const ucs_status_ptr_t request : closing) {
        wait(request);
    }
    _team.barrier();
}

} // namespace examples

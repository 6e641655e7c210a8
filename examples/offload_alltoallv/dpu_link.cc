#include "dpu_link.h"

#include "examples/common/check.h"
#include "imported_buffer.h"

#include <chrono>
#include <fmt/format.h>
#include <stdexcept>
#include <thread>

namespace examples
{

static std::string address_of(ucp_worker_h worker)
{
    ucp_address_t* address = nullptr;
    std::size_t length     = 0;
    check(ucp_worker_get_address(worker, &address, &length), "ucp_worker_get_address");
    std::string text(reinterpret_cast<const char*>(address), length);
    ucp_worker_release_address(worker, address);
    return text;
}

dpu_link::dpu_link(control& launcher, unsigned rank, unsigned size)
    // Not UCP_FEATURE_EXPORTED_MEMH: it only adds a cache of imported memory, and that of UCX 1.18.1 ends the
    // process when a new buffer overlaps an old one that it still knows. The library has its own cache of aliases.
    : _context(open_context(UCP_FEATURE_TAG | UCP_FEATURE_RMA)), _worker(open_worker(_context.get())), _rank(rank),
      _outgoing(size, std::string(max_text_bytes, '\0')), _incoming(_outgoing), _tried(2)
{
    launcher.send(word::address, address_of(_worker.get()));
    const std::string addresses = launcher.receive(word::addresses);
    std::string_view rest       = addresses;
    for (unsigned peer = 0; peer < size; ++peer) {
        const std::string address(take_text(rest)); // well aligned
        ucp_ep_params_t params{};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address    = reinterpret_cast<const ucp_address_t*>(address.data());
        ucp_ep_h endpoint = nullptr;
        check(ucp_ep_create(_worker.get(), &params, &endpoint), "ucp_ep_create");
        _endpoints.push_back(endpoint);
    }
    trade(std::vector<std::string>(size)); // connects
}

void dpu_link::wait(ucs_status_ptr_t request)
{
    if (!UCS_PTR_IS_PTR(request)) {
        check(UCS_PTR_STATUS(request), "a transfer");
        return;
    }
    // There may be more processes than processors, and the others have to work before this one can go on.
    constexpr unsigned spins = 64;
    constexpr std::chrono::microseconds rest{20};
    ucs_status_t status = UCS_INPROGRESS;
    for (unsigned idle = 0; (status = ucp_request_check_status(request)) == UCS_INPROGRESS;) {
        idle = ucp_worker_progress(_worker.get()) == 0 ? idle + 1 : 0;
        if (idle % spins == spins - 1) {
            std::this_thread::sleep_for(rest);
        }
    }
    ucp_request_free(request);
    check(status, "a transfer");
}

void dpu_link::wait_all(std::vector<ucs_status_ptr_t>& requests)
{
    for (const ucs_status_ptr_t request : requests) {
        wait(request);
    }
    requests.clear();
}

std::vector<std::string> dpu_link::trade(const std::vector<std::string>& texts)
{
    const auto tag_of = [&](unsigned sender) { return _num_trades << 16 | sender; };
    const ucp_request_param_t defaults{};
    std::vector<ucs_status_ptr_t> requests;
    for (unsigned peer = 0; peer < _endpoints.size(); ++peer) {
        requests.push_back(ucp_tag_recv_nbx(_worker.get(), _incoming[peer].data(), max_text_bytes, tag_of(peer),
                                            ~ucp_tag_t{0}, &defaults));
    }
    for (unsigned peer = 0; peer < _endpoints.size(); ++peer) {
        std::string framed;
        append_text(framed, texts[peer]);
        if (framed.size() > max_text_bytes) {
            throw std::runtime_error(
                fmt::format("{} bytes of remote keys, more than {}", framed.size(), max_text_bytes));
        }
        framed.copy(_outgoing[peer].data(), framed.size());
        requests.push_back(
            ucp_tag_send_nbx(_endpoints[peer], _outgoing[peer].data(), max_text_bytes, tag_of(_rank), &defaults));
    }
    wait_all(requests);
    ++_num_trades;
    std::vector<std::string> received;
    for (const std::string& framed : _incoming) {
        std::string_view rest = framed;
        received.emplace_back(take_text(rest));
    }
    return received;
}

void dpu_link::try_device()
{
    _tried = {_tried[0] + 1, 0};
    const mapped_memory memory(_context.get(), _tried.data(), _tried.size() * sizeof(_tried[0]));
    const remote_key key(_endpoints[_rank], memory.packed_key());
    const ucp_request_param_t defaults{};
    wait(ucp_put_nbx(_endpoints[_rank], &_tried[0], sizeof(_tried[0]), reinterpret_cast<std::uintptr_t>(&_tried[1]),
                     key.get(), &defaults));
    wait(ucp_ep_flush_nbx(_endpoints[_rank], &defaults));
    if (_tried[0] != _tried[1]) {
        throw std::runtime_error("a put of this process into its own memory has not arrived");
    }
}

void dpu_link::close()
{
    trade(std::vector<std::string>(_endpoints.size())); // nobody needs this process any more
    std::vector<ucs_status_ptr_t> closing;
    for (const ucp_ep_h endpoint : _endpoints) {
        const ucp_request_param_t defaults{};
        closing.push_back(ucp_ep_close_nbx(endpoint, &defaults));
    }
    _endpoints.clear();
    wait_all(closing);
}

} // namespace examples

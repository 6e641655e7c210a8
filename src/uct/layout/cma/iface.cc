#include "lay_cma.h"

#include "process_copy.h"
#include "uct/layout/peer/ep.h"
#include "uct/layout/peer/iface.h"

#include <cerrno>

namespace ucxl
{

namespace
{

// As for lay_shm: UCP is to send long messages of direct windows in this way, and no others.
constexpr abi::option config_table[] = {
    {"", "", nullptr, offsetof(host_interface_config, super), abi::option_type::iface_options},
    {"BW", "5GBs", "Bandwidth as reported to UCP, which plans protocols with it",
     offsetof(host_interface_config, bandwidth), abi::option_type::bandwidth},
    {"OVERHEAD", "2us", "CPU time to start an operation as reported to UCP", offsetof(host_interface_config, overhead),
     abi::option_type::price},
    {"LATENCY", "80ns", "Latency of an operation as reported to UCP", offsetof(host_interface_config, latency),
     abi::option_type::price}};

const char* reason_of(int error)
{
    switch (error) {
    case ESTALE:
        return "are of a remote window that is gone";
    case ESRCH:
        return "are of a process that has ended";
    default:
        return "are memory of a process that the kernel does not copy";
    }
}

struct process_access {
    static constexpr const char* name = "lay_cma";

    struct no_offer {
    };
    static const char* refusal_of(const imported_window& window)
    {
        return is_published(window) ? nullptr : reason_of(ESTALE);
    }
    static no_offer offer_of(const imported_window&, const void*, std::size_t) { return {}; }

    static const char* put(const imported_window& window, std::uint64_t offset, const transfer_side& source,
                           std::size_t length, no_offer)
    {
        return copy_to_process(window, offset, source, length) ? nullptr : reason_of(errno);
    }

    static const char* get(const imported_window& window, std::uint64_t offset, const transfer_side& target,
                           std::size_t length, no_offer)
    {
        return copy_from_process(window, offset, target, length) ? nullptr : reason_of(errno);
    }
};

uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    host_endpoint<process_access>::fill(ops);
    host_interface_ops(ops);
    return ops;
}

ucs_status_t iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                        const uct_iface_config_t* config, uct_iface_h* iface)
{
    static uct_iface_ops_t ops = make_ops();
    return open_host_interface(ops, md, worker, params, config, iface);
}

} // namespace

constinit abi::transport lay_cma_tl({
    .name          = "lay_cma",
    .query_devices = query_host_devices,
    .iface_open    = iface_open,
    .iface_options = {"lay_cma transport", "LAY_CMA_", config_table, sizeof(host_interface_config)},
});

} // namespace ucxl

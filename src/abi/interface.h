// An interface of ours and its endpoints, in the form that the attached UCX expects.
//
// Example:
//     const interface_operations operations = {.estimate = estimate, .reaches = reaches};
//     struct my_interface { interface base; ... };
//     open_interface(self->base, ops, operations, md, worker, params, config);
#pragma once

#include "uct.h"

namespace ucxl::abi
{

// The operation whose price UCX asks for. Each side is host memory, a window of any type, or unknown:
// before 1.19 UCX does not tell the types.
struct perf_question {
    ep_operation operation; // last: not told
    ucs_memory_type_t local;
    ucs_memory_type_t remote;
};

struct perf_answer {
    double bandwidth; // bytes per second
    double overhead;  // seconds, as the latency
    double latency;
};

struct interface;

struct interface_operations {
    // UCS_ERR_UNSUPPORTED: the interface cannot do it, and UCX must not choose it.
    ucs_status_t (*estimate)(const interface& interface, const perf_question& question, perf_answer& answer);
    bool (*reaches)(const interface& interface, const uct_iface_addr_t* address);
};

// An interface's object begins with this.
struct interface {
    base_iface super;
    const interface_operations* operations; // static lifetime
};

ucs_status_t open_interface(interface& interface, uct_iface_ops_t& ops, const interface_operations& operations,
                            uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                            const uct_iface_config_t* config);
void close_interface(interface& interface);

// Fills in UCX's own functions for what is complete at once: flush, fence, and the older way to ask for reachability.
void stock_interface_ops(uct_iface_ops_t& ops);

// Lets the worker call ops.iface_progress in each turn from now on, for interfaces that have something to do.
void enable_progress(uct_iface_h iface);
void disable_progress(uct_iface_h iface);

// What UCX tells of every interface; the caller changes what differs.
void query_interface(interface& interface, uct_iface_attr_t& attr);

// Endpoints without state of their own.
ucs_status_t create_endpoint(const uct_ep_params_t* params, uct_ep_h* ep);
void destroy_endpoint(uct_ep_h ep);

} // namespace ucxl::abi

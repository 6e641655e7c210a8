// An interface whose operations are complete when they return: nothing to progress, wait for or flush. The transports
// begin with it and add what they move, whom they reach, and what they tell UCP about both.
//
// Example: struct my_iface { base_interface base; ... }; opened by open_base_interface(self->base, ...)
#pragma once

#include "abi/interface.h"

#include <cstddef>

namespace ucxl
{

struct base_interface {
    abi::interface super;
    int event_fd;    // never signalled, because nothing completes later
    double overhead; // seconds, as reported to UCP
    double latency;
};

// Fills in all operations except iface_close, iface_query, iface_get_address and those of an endpoint.
void base_interface_ops(uct_iface_ops_t& ops);

// Fills in everything except the operations and their limits: cap.flags, max_short, max_bcopy, atomics. The bandwidth
// is in bytes per second.
void query_base_interface(base_interface& self, std::size_t address_length, double bandwidth, uct_iface_attr_t& attr);

// Logs in the name of the transport. On failure it closes what it opened.
ucs_status_t open_base_interface(base_interface& self, const char* transport, uct_iface_ops_t& ops,
                                 const abi::interface_operations& operations, uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t* params, const uct_iface_config_t* config);
void close_base_interface(base_interface& self);

// The operations of an endpoint without state: create, destroy and flush it, and its queue of waiting operations, which
// is always empty.
void base_endpoint_ops(uct_iface_ops_t& ops);

} // namespace ucxl

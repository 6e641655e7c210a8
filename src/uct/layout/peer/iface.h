// An interface that reaches other processes of its host and user; its operations are complete when they return. It is
// the common part of lay_shm and lay_cma, which add the remote keys they take and what they do with them.
//
// Example: struct config table with the fields of host_interface_config; open_host_interface(ops, ...)
#pragma once

#include "abi/component.h"
#include "sys/process.h"
#include "uct/layout/base/iface.h"

namespace ucxl
{

struct host_interface {
    base_interface base;
    process_identity owner;
    double bandwidth;          // bytes per second, as reported to UCP
    std::uint64_t seen_passes; // of the board of this process, by lay_shm
};

struct host_interface_config {
    uct_iface_config super;
    double bandwidth; // bytes per second
    double overhead;  // seconds
    double latency;
};

// The longest operation that goes through a buffer of UCP.
inline constexpr std::size_t host_bcopy_length = 8192;

// Fills in all operations except those of an endpoint.
void host_interface_ops(uct_iface_ops_t& ops);
// Implements iface_query: puts and gets of every kind.
ucs_status_t query_host_interface(uct_iface_h iface, uct_iface_attr_t* attr);
// When the last interface closes, windows that are imported and unused are dropped.
ucs_status_t open_host_interface(uct_iface_ops_t& ops, uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t* params, const uct_iface_config_t* config,
                                 uct_iface_h* iface);
// Implements iface_close.
void close_host_interface(uct_iface_h iface);
// Whether such interfaces are open in this process. Any thread.
bool has_host_interfaces();
// Implements query_devices: one device, named as the component, or none if other processes cannot be reached.
ucs_status_t query_host_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices);

} // namespace ucxl

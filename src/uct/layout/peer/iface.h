// An interface that reaches other processes of its host and user, with operations that are complete when they return:
// what lay_shm and lay_cma have in common. They add who takes which remote keys, and what is done with them.
//
// Example: struct config table with the fields of host_interface_config; open_host_interface(ops, ...)
#pragma once

#include "sys/process.h"
#include "uct/layout/base/iface.h"

namespace ucxl
{

struct host_interface {
    base_interface base;
    process_identity owner;
    double bandwidth; // bytes per second UCP is told
};

struct host_interface_config {
    uct_iface_config super;
    double bandwidth; // bytes per second
    double overhead;  // seconds
    double latency;
};

// Longest operation that goes through a buffer of UCP's.
inline constexpr std::size_t host_bcopy_length = 8192;

// All but what an endpoint does.
void host_interface_ops(uct_iface_ops_t& ops);
// The iface_query of it: puts and gets of every kind.
ucs_status_t query_host_interface(uct_iface_h iface, uct_iface_attr_t* attr);
// With the last interface of all, windows that were imported and are not used are given up.
ucs_status_t open_host_interface(uct_iface_ops_t& ops, uct_md_h md, uct_worker_h worker,
                                 const uct_iface_params_t* params, const uct_iface_config_t* config,
                                 uct_iface_h* iface);
// The query_devices of a transport: one device, named as the component, unless there is no way to other processes.
ucs_status_t query_host_devices(uct_md_h md, abi::tl_device_resource** devices, unsigned* num_devices);

} // namespace ucxl

#include "lay_shm.h"

#include "host_interface.h"
#include "lay_shm_ep.h"

namespace ucxl
{

namespace
{

// The overhead keeps small messages on the eager protocols, which are faster for them.
ucs_config_field_t config_table[] = {
    {"", "", nullptr, offsetof(host_interface_config, super), UCS_CONFIG_TYPE_TABLE(uct_iface_config_table)},
    {"BW", "20GBs", "Bandwidth UCP is told", offsetof(host_interface_config, bandwidth), UCS_CONFIG_TYPE_BW},
    {"OVERHEAD", "2us", "CPU time UCP is told for starting an operation", offsetof(host_interface_config, overhead),
     UCS_CONFIG_TYPE_TIME},
    {"LATENCY", "50ns", "Latency UCP is told for an operation", offsetof(host_interface_config, latency),
     UCS_CONFIG_TYPE_TIME},
    {}};

ucs_status_t iface_query(uct_iface_h iface, uct_iface_attr_t* attr)
{
    query_host_interface(iface, attr);
    attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_CPU;
    constexpr std::uint64_t posts = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) |
                                    UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR);
    constexpr std::uint64_t fetches = posts | UCS_BIT(UCT_ATOMIC_OP_SWAP) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    attr->cap.atomic32.op_flags     = posts;
    attr->cap.atomic64.op_flags     = posts;
    attr->cap.atomic32.fop_flags    = fetches;
    attr->cap.atomic64.fop_flags    = fetches;
    return UCS_OK;
}

uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    lay_shm_ep_ops(ops);
    lay_shm_atomic_ops(ops);
    host_interface_ops(ops);
    ops.iface_query = iface_query;
    return ops;
}

ucs_status_t iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t* params,
                        const uct_iface_config_t* config, uct_iface_h* iface)
{
    static uct_iface_ops_t ops = make_ops();
    return open_host_interface(ops, md, worker, params, config, iface);
}

} // namespace

constinit abi::tl lay_shm_tl = {
    .name          = "lay_shm",
    .query_devices = query_host_devices,
    .iface_open    = iface_open,
    .config        = {.name   = "lay_shm transport",
                      .prefix = "LAY_SHM_",
                      .table  = config_table,
                      .size   = sizeof(host_interface_config),
                      .list   = {},
                      .flags  = 0},
    .list          = {},
};

} // namespace ucxl

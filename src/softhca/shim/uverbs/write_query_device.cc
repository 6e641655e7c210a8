// QUERY_DEVICE in both versions: what the capabilities of the device are in the words of verbs.
#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>

#include "call.h"
#include "softhca/shim/sysfs/device_caps.h"
#include "softhca/shim/sysfs/device_identity.h"
#include "softhca/shim/sysfs/files.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t page_bytes         = 4096;
constexpr std::uint32_t max_read_sges      = 30;
constexpr std::uint32_t max_send_wqe_bytes = 512; // that SGEs are counted in
constexpr std::uint32_t segment_bytes      = 16;
constexpr std::uint32_t unlimited          = 0x7fffffff;

bool atomics_of_8_bytes(device_caps& caps)
{
    const auto atomic = caps.atomic();
    const auto needed =
        std::to_underlying(prm::atomic_operation::compare_swap) | std::to_underlying(prm::atomic_operation::fetch_add);
    const auto operations = std::to_underlying(atomic.get(prm::atomic_caps::atomic_operations));
    return (operations & needed) == needed && (atomic.get(prm::atomic_caps::atomic_size_qp) & 1U << 3) != 0;
}

int fill_device(device_file& file, ib_uverbs_query_device_resp& to)
{
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    device_caps atomic;
    const bool has_atomics = caps.general().get(prm::hca_cap::atomic) != 0 &&
                             atomic.query(file, prm::cap_page::atomic) == 0 && atomics_of_8_bytes(atomic);
    const auto from               = caps.general();
    const function_record& record = file.device.function(file.function);
    const auto power              = [&](auto field) { return std::uint32_t{1} << from.get(field); };

    to.fw_ver         = firmware_major << 32 | firmware_minor << 16 | firmware_sub;
    to.node_guid      = std::byteswap(record.node_guid);
    to.sys_image_guid = std::byteswap(record.image_guid);
    to.max_mr_size    = ~std::uint64_t{0};
    to.page_size_cap  = ~std::uint64_t{page_bytes - 1};
    to.vendor_id      = vendor_id;
    to.vendor_part_id = vendor_part_id;
    to.max_qp         = power(prm::hca_cap::log_max_qp);
    to.max_qp_wr      = power(prm::hca_cap::log_max_qp_sz);

    const std::uint32_t receive_sges = from.get(prm::hca_cap::max_wqe_sz_rq) / segment_bytes;
    const std::uint32_t send_bytes = std::min<std::uint32_t>(from.get(prm::hca_cap::max_wqe_sz_sq), max_send_wqe_bytes);
    const std::uint32_t send_sges  = (send_bytes - 2 * segment_bytes) / segment_bytes;
    to.max_sge                     = std::min(receive_sges, send_sges);
    to.max_sge_rd                  = std::min(max_read_sges, to.max_sge);
    to.max_srq_sge                 = receive_sges - 1;

    to.device_cap_flags = IB_UVERBS_DEVICE_CHANGE_PHY_PORT | IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
                          IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RC_RNR_NAK_GEN |
                          IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS;
    if (from.get(prm::hca_cap::imaicl) != 0) {
        to.device_cap_flags |= IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B;
        to.max_mw = power(prm::hca_cap::log_max_mkey);
    }
    if (from.get(prm::hca_cap::xrc) != 0) {
        to.device_cap_flags |= IB_UVERBS_DEVICE_XRC;
    }
    to.max_cq              = power(prm::hca_cap::log_max_cq);
    to.max_cqe             = power(prm::hca_cap::log_max_cq_sz) - 1;
    to.max_mr              = power(prm::hca_cap::log_max_mkey);
    to.max_pd              = power(prm::hca_cap::log_max_pd);
    to.max_qp_rd_atom      = power(prm::hca_cap::log_max_ra_req_qp);
    to.max_qp_init_rd_atom = power(prm::hca_cap::log_max_ra_res_qp);
    to.max_res_rd_atom     = to.max_qp_rd_atom * to.max_qp;
    to.atomic_cap          = has_atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
    to.max_ah              = unlimited;
    to.max_srq             = power(prm::hca_cap::log_max_srq);
    to.max_srq_wr          = power(prm::hca_cap::log_max_srq_sz) - 1;
    to.max_pkeys           = pkey_table_length;
    to.local_ca_ack_delay  = from.get(prm::hca_cap::local_ca_ack_delay);
    to.phys_port_cnt       = 1;
    if (const std::uint32_t per_group = from.get(prm::hca_cap::max_qp_mcg); per_group != 0) {
        to.max_mcast_grp             = power(prm::hca_cap::log_max_mcg);
        to.max_mcast_qp_attach       = per_group;
        to.max_total_mcast_qp_attach = to.max_mcast_grp * per_group;
    }
    return 0;
}

int fill_extended(device_file& file, ib_uverbs_ex_query_device_resp& to)
{
    if (const int error = fill_device(file, to.base); error != 0) {
        return error;
    }
    to.device_cap_flags_ex = to.base.device_cap_flags;
    to.timestamp_mask      = timestamp_mask;
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    to.hca_core_clock = caps.general().get(prm::hca_cap::device_frequency_khz);
    if (caps.general().get(prm::hca_cap::cq_moderation) != 0) {
        to.cq_moderation_caps.max_cq_moderation_count  = 0xffff;
        to.cq_moderation_caps.max_cq_moderation_period = 0xfff;
    }
    if (caps.general().get(prm::hca_cap::device_memory) == 0) {
        return 0;
    }
    device_caps memory;
    if (const int error = memory.query(file, prm::cap_page::device_memory); error != 0) {
        return error;
    }
    if (memory.device_memory().get(prm::device_mem_cap::memic) != 0) {
        to.max_dm_size = memory.device_memory().get(prm::device_mem_cap::max_memic_size);
    }
    return 0;
}

// The driver's part has little to tell: none of the offloads is there.
int fill_driver(uverbs_call& call, mlx5_ib_query_device_resp& to)
{
    const std::size_t room = call.length(UVERBS_ATTR_UHW_OUT);
    if (room != 0 && room < sizeof(std::uint64_t)) {
        return EINVAL;
    }
    device_caps caps;
    if (const int error = caps.query(call.file, prm::cap_page::general); error != 0) {
        return error;
    }
    to.response_length = static_cast<std::uint32_t>(std::min(room, sizeof(to)));
    if (caps.general().get(prm::hca_cap::cqe_128_always)) {
        to.flags |= MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
    }
    return 0;
}

} // namespace

int write_query_device(uverbs_call& call)
{
    ib_uverbs_query_device_resp response{};
    const int error = fill_device(call.file, response);
    return error != 0 ? error : call.respond(response);
}

int write_query_device_ex(uverbs_call& call)
{
    ib_uverbs_ex_query_device request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    if (request.comp_mask != 0 || request.reserved != 0) {
        return EINVAL;
    }
    ib_uverbs_ex_query_device_resp response{};
    if (const int error = fill_extended(call.file, response); error != 0) {
        return error;
    }
    response.response_length =
        static_cast<std::uint32_t>(std::min(call.length(UVERBS_ATTR_CORE_OUT), sizeof(response)));

    mlx5_ib_query_device_resp driver{};
    if (const int error = fill_driver(call, driver); error != 0) {
        return error;
    }
    if (const int error = call.write(UVERBS_ATTR_UHW_OUT, driver); error != 0) {
        return error;
    }
    return call.respond(response);
}

} // namespace ucxl::softhca

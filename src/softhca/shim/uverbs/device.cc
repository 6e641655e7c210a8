// The device: its attributes, port and GIDs, and the channel of asynchronous events.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "call.h"
#include "device_caps.h"
#include "methods.h"
#include "port_attributes.h"
#include "softhca/core/arena/limits.h"
#include "softhca/shim/host/fabric_memory.h"
#include "softhca/shim/sysfs/device_identity.h"
#include "softhca/shim/sysfs/files.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

int invoke_write(uverbs_call& call)
{
    std::uint64_t number = 0;
    if (const int error = call.read(UVERBS_ATTR_WRITE_CMD, number); error != 0) {
        return error;
    }
    if (number > UINT32_MAX) {
        return EINVAL;
    }
    const write_command* command = nullptr;
    if (const int error = find_write_command(static_cast<std::uint32_t>(number), command); error != 0) {
        return error;
    }
    if (call.length(UVERBS_ATTR_CORE_IN) < command->request_bytes ||
        call.length(UVERBS_ATTR_CORE_OUT) < command->response_bytes) {
        return ENOSPC;
    }
    return run_write_command(call, *command);
}

int query_port(uverbs_call& call)
{
    std::uint64_t port = 0;
    if (const int error = call.read(UVERBS_ATTR_QUERY_PORT_PORT_NUM, port); error != 0) {
        return error;
    }
    ib_uverbs_query_port_resp_ex response{};
    if (const int error = port_attributes(call.file, port, response); error != 0) {
        return error;
    }
    return call.write(UVERBS_ATTR_QUERY_PORT_RESP, response);
}

// There is no embedded switch, so nothing is known about the port's place in it.
int query_switch_port(uverbs_call& call)
{
    std::uint32_t port = 0;
    if (const int error = call.read(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, port); error != 0) {
        return error;
    }
    if (port != only_port) {
        return EINVAL;
    }
    const mlx5_ib_uapi_query_port response{};
    return call.write(MLX5_IB_ATTR_QUERY_PORT, response);
}

int no_data_direct(uverbs_call&)
{
    return ENODEV;
}

ib_uverbs_gid_entry default_gid(const device_file& file)
{
    ib_uverbs_gid_entry entry{};
    entry.gid[0]    = std::byteswap(default_gid_prefix);
    entry.gid[1]    = std::byteswap(file.device.function(file.function).port_guid);
    entry.gid_index = 0;
    entry.port_num  = only_port;
    entry.gid_type  = IB_UVERBS_GID_TYPE_IB;
    return entry;
}

int query_gid_entry(uverbs_call& call)
{
    std::uint64_t port  = 0;
    std::uint64_t index = 0;
    std::uint32_t flags = 0;
    if (const int error = call.read_flags(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 0, flags); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, port); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, index); error != 0) {
        return error;
    }
    if (port != only_port || index >= gid_table_length) {
        return EINVAL;
    }
    return index != 0 ? ENODATA : call.write(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, default_gid(call.file));
}

int query_gid_table(uverbs_call& call)
{
    std::uint64_t entry_bytes = 0;
    std::uint32_t flags       = 0;
    if (const int error = call.read_flags(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 0, flags); error != 0) {
        return error;
    }
    if (const int error = call.read(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, entry_bytes); error != 0) {
        return error;
    }
    const std::size_t room = call.length(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
    if (entry_bytes == 0 || entry_bytes > room || room / entry_bytes == 0) {
        return EINVAL;
    }
    // A caller with a longer entry gets zeros at its end.
    std::vector<std::byte> entry(std::max<std::size_t>(entry_bytes, sizeof(ib_uverbs_gid_entry)));
    const ib_uverbs_gid_entry known = default_gid(call.file);
    std::memcpy(entry.data(), &known, sizeof(known));
    if (const int error = call.write_bytes(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, entry.data(), entry_bytes);
        error != 0) {
        return error;
    }
    const std::uint64_t entries = 1;
    return call.write(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, entries);
}

int alloc_async_events(uverbs_call& call)
{
    if (const int error = call.create_channel(event_format::async, only_port); error != 0) {
        return error;
    }
    const std::int64_t fd = call.made_channel()->channel().reader;
    if (const int error = call.write(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd); error != 0) {
        return error;
    }
    if (call.file.async_events == nullptr) {
        call.file.async_events = call.made_channel();
    }
    return 0;
}

constexpr std::array invoke_write_attributes{
    constant(UVERBS_ATTR_WRITE_CMD),
    input_from(UVERBS_ATTR_CORE_IN, sizeof(std::uint32_t), presence::optional),
    output_from(UVERBS_ATTR_CORE_OUT, 0, presence::optional),
    driver_input,
    driver_output,
};

constexpr std::array query_port_attributes{
    constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM),
    output_from(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(ib_uverbs_query_port_resp)),
};

constexpr std::array query_switch_port_attributes{
    input<std::uint32_t>(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM),
    output_from(MLX5_IB_ATTR_QUERY_PORT, sizeof(std::uint64_t)),
};

constexpr std::array data_direct_attributes{
    output_from(MLX5_IB_ATTR_GET_DATA_DIRECT_SYSFS_PATH, 0),
};

constexpr std::array gid_entry_attributes{
    constant(UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
    constant(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
    flags(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, presence::mandatory),
    output_from(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(std::uint64_t)),
};

constexpr std::array gid_table_attributes{
    constant(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
    flags(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS),
    output_from(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0),
    output<std::uint64_t>(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES),
};

constexpr std::array async_event_attributes{new_descriptor(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE)};

constexpr std::array methods{
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, invoke_write_attributes, invoke_write},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, query_port_attributes, query_port},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, gid_entry_attributes, query_gid_entry},
    method_spec{UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, gid_table_attributes, query_gid_table},
    method_spec{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, query_switch_port_attributes, query_switch_port},
    method_spec{UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_GET_DATA_DIRECT_SYSFS_PATH, data_direct_attributes,
                no_data_direct},
    method_spec{UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, async_event_attributes, alloc_async_events},
};

} // namespace

std::span<const method_spec> device_methods()
{
    return methods;
}

namespace
{

constexpr std::uint32_t page_bytes         = 4096;
constexpr std::uint32_t max_read_sges      = 30;
constexpr std::uint32_t max_send_wqe_bytes = 512; // the length that SGEs are counted in
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

int fill_device(device_file& file, ib_uverbs_query_device_resp& response)
{
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    device_caps atomic;
    const bool has_atomics = caps.general().get(prm::hca_cap::atomic) != 0 &&
                             atomic.query(file, prm::cap_page::atomic) == 0 && atomics_of_8_bytes(atomic);
    const auto general            = caps.general();
    const function_record& record = file.device.function(file.function);
    const auto power              = [&](auto field) { return std::uint32_t{1} << general.get(field); };

    response.fw_ver         = firmware_major << 32 | firmware_minor << 16 | firmware_sub;
    response.node_guid      = std::byteswap(record.node_guid);
    response.sys_image_guid = std::byteswap(record.image_guid);
    response.max_mr_size    = ~std::uint64_t{0};
    response.page_size_cap  = ~std::uint64_t{page_bytes - 1};
    response.vendor_id      = vendor_id;
    response.vendor_part_id = vendor_part_id;
    response.max_qp         = power(prm::hca_cap::log_max_qp);
    response.max_qp_wr      = power(prm::hca_cap::log_max_qp_sz);

    const std::uint32_t receive_sges = general.get(prm::hca_cap::max_wqe_sz_rq) / segment_bytes;
    const std::uint32_t send_bytes =
        std::min<std::uint32_t>(general.get(prm::hca_cap::max_wqe_sz_sq), max_send_wqe_bytes);
    const std::uint32_t send_sges = (send_bytes - 2 * segment_bytes) / segment_bytes;
    response.max_sge              = std::min(receive_sges, send_sges);
    response.max_sge_rd           = std::min(max_read_sges, response.max_sge);
    response.max_srq_sge          = receive_sges - 1;

    response.device_cap_flags = IB_UVERBS_DEVICE_CHANGE_PHY_PORT | IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT |
                                IB_UVERBS_DEVICE_SYS_IMAGE_GUID | IB_UVERBS_DEVICE_RC_RNR_NAK_GEN |
                                IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS;
    if (general.get(prm::hca_cap::imaicl) != 0) {
        response.device_cap_flags |= IB_UVERBS_DEVICE_MEM_WINDOW | IB_UVERBS_DEVICE_MEM_WINDOW_TYPE_2B;
        response.max_mw = power(prm::hca_cap::log_max_mkey);
    }
    if (general.get(prm::hca_cap::xrc) != 0) {
        response.device_cap_flags |= IB_UVERBS_DEVICE_XRC;
    }
    response.max_cq              = power(prm::hca_cap::log_max_cq);
    response.max_cqe             = power(prm::hca_cap::log_max_cq_sz) - 1;
    response.max_mr              = power(prm::hca_cap::log_max_mkey);
    response.max_pd              = power(prm::hca_cap::log_max_pd);
    response.max_qp_rd_atom      = power(prm::hca_cap::log_max_ra_req_qp);
    response.max_qp_init_rd_atom = power(prm::hca_cap::log_max_ra_res_qp);
    response.max_res_rd_atom     = response.max_qp_rd_atom * response.max_qp;
    response.atomic_cap          = has_atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
    response.max_ah              = unlimited;
    response.max_srq             = power(prm::hca_cap::log_max_srq);
    response.max_srq_wr          = power(prm::hca_cap::log_max_srq_sz) - 1;
    response.max_pkeys           = pkey_table_length;
    response.local_ca_ack_delay  = general.get(prm::hca_cap::local_ca_ack_delay);
    response.phys_port_cnt       = 1;
    if (const std::uint32_t per_group = general.get(prm::hca_cap::max_qp_mcg); per_group != 0) {
        response.max_mcast_grp             = power(prm::hca_cap::log_max_mcg);
        response.max_mcast_qp_attach       = per_group;
        response.max_total_mcast_qp_attach = response.max_mcast_grp * per_group;
    }
    return 0;
}

int fill_extended(device_file& file, ib_uverbs_ex_query_device_resp& response)
{
    if (const int error = fill_device(file, response.base); error != 0) {
        return error;
    }
    response.device_cap_flags_ex = response.base.device_cap_flags;
    response.timestamp_mask      = timestamp_mask;
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    response.hca_core_clock = caps.general().get(prm::hca_cap::device_frequency_khz);
    if (caps.general().get(prm::hca_cap::cq_moderation) != 0) {
        response.cq_moderation_caps.max_cq_moderation_count  = 0xffff;
        response.cq_moderation_caps.max_cq_moderation_period = 0xfff;
    }
    if (caps.general().get(prm::hca_cap::device_memory) == 0) {
        return 0;
    }
    device_caps memory;
    if (const int error = memory.query(file, prm::cap_page::device_memory); error != 0) {
        return error;
    }
    if (memory.device_memory().get(prm::device_mem_cap::memic) != 0) {
        response.max_dm_size = memory.device_memory().get(prm::device_mem_cap::max_memic_size);
    }
    return 0;
}

// The driver's part of the answer: none of the offloads exists.
int fill_driver(uverbs_call& call, mlx5_ib_query_device_resp& response)
{
    const std::size_t room = call.length(UVERBS_ATTR_UHW_OUT);
    if (room != 0 && room < sizeof(std::uint64_t)) {
        return EINVAL;
    }
    device_caps caps;
    if (const int error = caps.query(call.file, prm::cap_page::general); error != 0) {
        return error;
    }
    response.response_length = static_cast<std::uint32_t>(std::min(room, sizeof(response)));
    if (caps.general().get(prm::hca_cap::cqe_128_always)) {
        response.flags |= MLX5_IB_QUERY_DEV_RESP_FLAGS_CQE_128B_PAD;
    }
    response.flags |= MLX5_IB_QUERY_DEV_RESP_FLAGS_SCAT2CQE_DCT; // the kernel knows that flag of DC targets
    response.dci_streams_caps.max_log_num_concurent = caps.general().get(prm::hca_cap::log_max_dci_stream_channels);
    response.dci_streams_caps.max_log_num_errored   = caps.general().get(prm::hca_cap::log_max_dci_errored_streams);
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

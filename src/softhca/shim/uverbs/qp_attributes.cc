// The attributes of queue pairs: MODIFY, which becomes the command that changes the state, and QUERY.
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include "call.h"
#include "dct.h"
#include "device_caps.h"
#include "port_attributes.h"
#include "prm/qp.h"
#include "qp_transition.h"
#include "softhca/shim/objects/verbs.h"
#include "softhca/shim/sysfs/files.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t path_bits_mask  = 0x7f;
constexpr std::uint32_t flow_label_mask = 0xfffff;
constexpr std::uint32_t first_rate      = 2; // IBV_RATE_2_5_GBPS, the first rate; the device numbers it 7
constexpr std::uint32_t rate_offset     = 5;

void set_path(mailbox<prm::modify_qp_in>& input, const ib_uverbs_qp_dest& destination)
{
    const auto path = input.at(prm::modify_qp_in::qpc).at(prm::qpc::primary_address_path);
    input.set(path, prm::ads::rlid, destination.dlid);
    input.set(path, prm::ads::mlid, destination.src_path_bits & path_bits_mask);
    input.set(path, prm::ads::sl, destination.sl);
    input.set(path, prm::ads::vhca_port_num, destination.port_num);
    input.set(path, prm::ads::stat_rate,
              destination.static_rate >= first_rate ? destination.static_rate + rate_offset : 0);
    if (destination.is_global == 0) {
        return;
    }
    input.set(path, prm::ads::grh, 1);
    input.set(path, prm::ads::src_addr_index, destination.sgid_index);
    input.set(path, prm::ads::hop_limit, destination.hop_limit);
    input.set(path, prm::ads::tclass, destination.traffic_class);
    input.set(path, prm::ads::flow_label, destination.flow_label & flow_label_mask);
    std::ranges::copy(std::as_bytes(std::span(destination.dgid)), path.at(prm::ads::rgid_rip).begin());
}

void get_path(prm::const_view<prm::ads> path, ib_uverbs_qp_dest& destination)
{
    const std::uint32_t rate  = path.get(prm::ads::stat_rate);
    destination.dlid          = path.get(prm::ads::rlid);
    destination.src_path_bits = path.get(prm::ads::mlid);
    destination.sl            = path.get(prm::ads::sl);
    destination.port_num      = path.get(prm::ads::vhca_port_num);
    destination.static_rate   = static_cast<std::uint8_t>(rate > rate_offset ? rate - rate_offset : 0);
    destination.is_global     = path.get(prm::ads::grh) ? 1 : 0;
    if (destination.is_global == 0) {
        return;
    }
    destination.sgid_index    = path.get(prm::ads::src_addr_index);
    destination.hop_limit     = path.get(prm::ads::hop_limit);
    destination.traffic_class = path.get(prm::ads::tclass);
    destination.flow_label    = path.get(prm::ads::flow_label);
    std::ranges::copy(path.at(prm::ads::rgid_rip), std::as_writable_bytes(std::span(destination.dgid)).begin());
}

using modify_mailbox = mailbox<prm::modify_qp_in>;

constexpr std::uint32_t standard_attributes = (IBV_QP_DEST_QPN << 1) - 1;
constexpr std::uint32_t access_mask =
    IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t datagram_log_message = 12;
constexpr std::uint32_t gids_in_use          = 1;

// Checks of the request.
int check_values(device_file& file, const qp_object& queue_pair, const ib_uverbs_modify_qp& request)
{
    const auto has = [&](std::uint32_t attribute) { return (request.attr_mask & attribute) != 0; };
    if ((has(IBV_QP_CUR_STATE) && request.cur_qp_state > IBV_QPS_ERR) ||
        (has(IBV_QP_STATE) && request.qp_state > IBV_QPS_ERR)) {
        return EINVAL;
    }
    if (has(IBV_QP_PORT) && request.port_num != only_port) {
        return EINVAL;
    }
    if (has(IBV_QP_AV) && (request.dest.port_num != only_port ||
                           (request.dest.is_global != 0 && request.dest.sgid_index >= gids_in_use))) {
        return EINVAL;
    }
    if (has(IBV_QP_PKEY_INDEX) && request.pkey_index >= pkey_table_length) {
        return EINVAL;
    }
    if (has(IBV_QP_PATH_MTU) && queue_pair.service != prm::qp_service::ud &&
        (request.path_mtu < IBV_MTU_256 || request.path_mtu > IBV_MTU_4096)) {
        return EINVAL;
    }
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    const bool dynamic = queue_pair.service == prm::qp_service::dci;
    const auto general = caps.general();
    const auto most_out =
        1U << (dynamic ? general.get(prm::hca_cap::log_max_ra_res_dc) : general.get(prm::hca_cap::log_max_ra_res_qp));
    const auto most_in =
        1U << (dynamic ? general.get(prm::hca_cap::log_max_ra_req_dc) : general.get(prm::hca_cap::log_max_ra_req_qp));
    return (has(IBV_QP_MAX_QP_RD_ATOMIC) && request.max_rd_atomic > most_out) ||
                   (has(IBV_QP_MAX_DEST_RD_ATOMIC) && request.max_dest_rd_atomic > most_in)
               ? EINVAL
               : 0;
}

// log2 of the number of reads and atomics. 0 and 1 are both 2^0, so the access bits say that there are none.
std::uint32_t log_reads(std::uint32_t reads)
{
    return reads == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(reads - 1));
}

// As the kernel's driver does it: with any reads, atomics are refused on a device that has none.
int set_access(device_file& file, modify_mailbox& input, const qp_object& queue_pair,
               const ib_uverbs_modify_qp& request)
{
    const bool changes_access = (request.attr_mask & IBV_QP_ACCESS_FLAGS) != 0;
    const bool changes_reads  = (request.attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0;
    if (!changes_access && !changes_reads) {
        return 0;
    }
    const std::uint32_t reads = changes_reads ? request.max_dest_rd_atomic : queue_pair.responder_reads;
    std::uint32_t access      = (changes_access ? request.qp_access_flags : queue_pair.access) & access_mask;
    if (reads == 0) {
        access &= IB_UVERBS_ACCESS_REMOTE_WRITE;
    }
    const auto context = input.at(prm::modify_qp_in::qpc);
    input.set(context, prm::qpc::rre, (access & IB_UVERBS_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
    input.set(context, prm::qpc::rwe, (access & IB_UVERBS_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
    if ((access & IB_UVERBS_ACCESS_REMOTE_ATOMIC) != 0) {
        device_caps caps;
        if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
            return error;
        }
        if (caps.general().get(prm::hca_cap::atomic) == 0) {
            return EOPNOTSUPP;
        }
        input.set(context, prm::qpc::rae, 1);
        input.set(context, prm::qpc::atomic_mode, prm::atomic_mode::up_to_8b);
    }
    input.set(context, prm::qpc::log_rra_max, log_reads(reads));
    return 0;
}

// The attributes that are copied to a field.
void set_plain_fields(modify_mailbox& input, const ib_uverbs_modify_qp& request)
{
    const auto context = input.at(prm::modify_qp_in::qpc);
    const auto path    = context.at(prm::qpc::primary_address_path);
    const auto put     = [&](std::uint32_t attribute, auto part, auto field, auto value) {
        if ((request.attr_mask & attribute) != 0) {
            input.set(part, field, value);
        }
    };
    put(IBV_QP_PKEY_INDEX, path, prm::ads::pkey_index, request.pkey_index);
    put(IBV_QP_PORT, path, prm::ads::vhca_port_num, request.port_num);
    put(IBV_QP_TIMEOUT, path, prm::ads::ack_timeout, request.timeout);
    put(IBV_QP_QKEY, context, prm::qpc::q_key, request.qkey);
    put(IBV_QP_DEST_QPN, context, prm::qpc::remote_qpn, request.dest_qp_num & 0xffffff);
    put(IBV_QP_RQ_PSN, context, prm::qpc::next_rcv_psn, request.rq_psn & 0xffffff);
    put(IBV_QP_SQ_PSN, context, prm::qpc::next_send_psn, request.sq_psn & 0xffffff);
    put(IBV_QP_RETRY_CNT, context, prm::qpc::retry_count, request.retry_cnt);
    put(IBV_QP_RNR_RETRY, context, prm::qpc::rnr_retry, request.rnr_retry);
    put(IBV_QP_MIN_RNR_TIMER, context, prm::qpc::min_rnr_nak, request.min_rnr_timer);
    put(IBV_QP_MAX_QP_RD_ATOMIC, context, prm::qpc::log_sra_max, log_reads(request.max_rd_atomic));
}

int set_message_size(device_file& file, modify_mailbox& input, const qp_object& queue_pair,
                     const ib_uverbs_modify_qp& request)
{
    const auto context = input.at(prm::modify_qp_in::qpc);
    if (queue_pair.service == prm::qp_service::ud) {
        input.set(context, prm::qpc::mtu, prm::path_mtu::bytes_4096);
        input.set(context, prm::qpc::log_msg_max, datagram_log_message);
        return 0;
    }
    if ((request.attr_mask & IBV_QP_PATH_MTU) == 0) {
        return 0;
    }
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    input.set(context, prm::qpc::mtu, request.path_mtu);
    input.set(context, prm::qpc::log_msg_max, caps.general().get(prm::hca_cap::log_max_msg));
    return 0;
}

constexpr prm::path_migration migration_of(std::uint32_t verbs)
{
    switch (verbs) {
    case IBV_MIG_REARM:
        return prm::path_migration::rearm;
    case IBV_MIG_ARMED:
        return prm::path_migration::armed;
    default:
        return prm::path_migration::migrated;
    }
}

int change(device_file& file, const qp_object& queue_pair, const ib_uverbs_modify_qp& request, prm::command transition)
{
    if (transition == prm::command::to_rst_qp || transition == prm::command::to_err_qp) {
        mailbox<prm::plain_qp_in> input(transition);
        input.set(prm::plain_qp_in::qpn, queue_pair.qpn);
        return file.run(input);
    }
    modify_mailbox input(transition);
    input.set(prm::modify_qp_in::qpn, queue_pair.qpn);
    input.set(prm::modify_qp_in::opt_param_mask, optional_fields(transition, queue_pair.service, request.attr_mask));
    const bool migrates = (request.attr_mask & IBV_QP_PATH_MIG_STATE) != 0;
    input.set(input.at(prm::modify_qp_in::qpc), prm::qpc::pm_state,
              migrates ? migration_of(request.path_mig_state) : prm::path_migration::migrated);
    if ((request.attr_mask & IBV_QP_AV) != 0) {
        set_path(input, request.dest);
    }
    set_plain_fields(input, request);
    if (const int error = set_access(file, input, queue_pair, request); error != 0) {
        return error;
    }
    if (const int error = set_message_size(file, input, queue_pair, request); error != 0) {
        return error;
    }
    prm::storage<prm::modify_qp_out> output;
    return file.run(input, output);
}

// Stores what the next change of state needs.
void remember(qp_object& queue_pair, const ib_uverbs_modify_qp& request, std::uint32_t state)
{
    queue_pair.state = state;
    if ((request.attr_mask & IBV_QP_ACCESS_FLAGS) != 0) {
        queue_pair.access = request.qp_access_flags;
    }
    if ((request.attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) {
        queue_pair.responder_reads = request.max_dest_rd_atomic;
    }
    if (state == IBV_QPS_RESET) {
        queue_pair.access          = 0;
        queue_pair.responder_reads = 0;
    }
}

int modify(uverbs_call& call, const ib_uverbs_modify_qp& request, mlx5_ib_modify_qp_resp& answer)
{
    qp_object* queue_pair = nullptr;
    if (const int error = call.find_object(request.qp_handle, queue_pair); error != 0) {
        return error;
    }
    mlx5_ib_modify_qp driver{};
    if (const int error = call.read_growing(UVERBS_ATTR_UHW_IN, &driver, sizeof(driver)); error != 0) {
        return error;
    }
    if (driver.comp_mask != 0 || driver.burst_info.reserved != 0) {
        return EOPNOTSUPP;
    }
    if (queue_pair->target != nullptr) {
        return modify_target(call, *queue_pair, request, answer);
    }
    if (const int error = check_values(call.file, *queue_pair, request); error != 0) {
        return error;
    }
    const std::uint32_t from = (request.attr_mask & IBV_QP_CUR_STATE) != 0 ? request.cur_qp_state : queue_pair->state;
    const std::uint32_t to   = (request.attr_mask & IBV_QP_STATE) != 0 ? request.qp_state : from;
    const auto transition    = transition_command(from, to);
    if (!may_modify(from, to, queue_pair->service, request.attr_mask) || !transition) {
        return EINVAL;
    }
    if (const int error = change(call.file, *queue_pair, request, *transition); error != 0) {
        return error;
    }
    remember(*queue_pair, request, to);
    return 0;
}

} // namespace

int write_modify_qp(uverbs_call& call)
{
    ib_uverbs_modify_qp request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    mlx5_ib_modify_qp_resp driver{};
    return (request.attr_mask & ~standard_attributes) != 0 ? EOPNOTSUPP : modify(call, request, driver);
}

int write_modify_qp_ex(uverbs_call& call)
{
    ib_uverbs_ex_modify_qp request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    // The only other attributes are limits of the sending rate.
    if ((request.base.attr_mask & ~standard_attributes) != 0) {
        return EOPNOTSUPP;
    }
    mlx5_ib_modify_qp_resp driver{};
    if (const int error = modify(call, request.base, driver); error != 0) {
        return error;
    }
    const std::size_t room = call.length(UVERBS_ATTR_UHW_OUT);
    driver.response_length = static_cast<std::uint32_t>(std::min(room, sizeof(driver)));
    if (const int error = call.write(UVERBS_ATTR_UHW_OUT, driver); error != 0) {
        return error;
    }
    ib_uverbs_ex_modify_qp_resp response{};
    response.response_length =
        static_cast<std::uint32_t>(std::min(call.length(UVERBS_ATTR_CORE_OUT), sizeof(response)));
    return call.respond(response);
}

namespace
{

constexpr std::uint32_t access_read   = IB_UVERBS_ACCESS_REMOTE_READ;
constexpr std::uint32_t access_write  = IB_UVERBS_ACCESS_REMOTE_WRITE;
constexpr std::uint32_t access_atomic = IB_UVERBS_ACCESS_REMOTE_ATOMIC;

std::uint8_t verbs_migration(prm::path_migration state)
{
    switch (state) {
    case prm::path_migration::armed:
        return IBV_MIG_ARMED;
    case prm::path_migration::rearm:
        return IBV_MIG_REARM;
    case prm::path_migration::migrated:
    case prm::path_migration::reserved:
        break;
    }
    return IBV_MIG_MIGRATED;
}

void fill_connection(prm::const_view<prm::qpc> context, ib_uverbs_query_qp_resp& response)
{
    const auto path             = context.at(prm::qpc::primary_address_path);
    response.qkey               = context.get(prm::qpc::q_key);
    response.rq_psn             = context.get(prm::qpc::next_rcv_psn);
    response.sq_psn             = context.get(prm::qpc::next_send_psn);
    response.dest_qp_num        = context.get(prm::qpc::remote_qpn);
    response.pkey_index         = path.get(prm::ads::pkey_index);
    response.port_num           = path.get(prm::ads::vhca_port_num);
    response.timeout            = path.get(prm::ads::ack_timeout);
    response.path_mtu           = std::to_underlying(context.get(prm::qpc::mtu));
    response.path_mig_state     = verbs_migration(context.get(prm::qpc::pm_state));
    response.max_rd_atomic      = static_cast<std::uint8_t>(1U << context.get(prm::qpc::log_sra_max));
    response.max_dest_rd_atomic = static_cast<std::uint8_t>(1U << context.get(prm::qpc::log_rra_max));
    response.min_rnr_timer      = context.get(prm::qpc::min_rnr_nak);
    response.retry_cnt          = context.get(prm::qpc::retry_count);
    response.rnr_retry          = context.get(prm::qpc::rnr_retry);
    response.qp_access_flags    = (context.get(prm::qpc::rre) ? access_read : 0) |
                               (context.get(prm::qpc::rwe) ? access_write : 0) |
                               (context.get(prm::qpc::rae) ? access_atomic : 0);
}

} // namespace

int write_query_qp(uverbs_call& call)
{
    ib_uverbs_query_qp request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    qp_object* queue_pair = nullptr;
    if (const int error = call.find_object(request.qp_handle, queue_pair); error != 0) {
        return error;
    }
    if (queue_pair->target != nullptr) {
        return query_target(call, *queue_pair, request);
    }
    mailbox<prm::query_qp_in> input(prm::command::query_qp);
    input.set(prm::query_qp_in::qpn, queue_pair->qpn);
    prm::storage<prm::query_qp_out> output;
    if (const int error = call.file.run(input, output); error != 0) {
        return error;
    }
    const prm::const_view<prm::qpc> context = (*output).at(prm::query_qp_out::qpc);
    ib_uverbs_query_qp_resp response{};
    fill_connection(context, response);
    if (queue_pair->service == prm::qp_service::rc || queue_pair->service == prm::qp_service::uc) {
        get_path(context.at(prm::qpc::primary_address_path), response.dest);
    }
    queue_pair->state        = verbs_state(context.get(prm::qpc::state));
    response.qp_state        = static_cast<std::uint8_t>(queue_pair->state);
    response.cur_qp_state    = response.qp_state;
    response.sq_draining     = context.get(prm::qpc::state) == prm::qp_state::send_draining ? 1 : 0;
    response.max_send_wr     = queue_pair->limits.max_send_wr;
    response.max_recv_wr     = queue_pair->limits.max_recv_wr;
    response.max_send_sge    = queue_pair->limits.max_send_sge;
    response.max_recv_sge    = queue_pair->limits.max_recv_sge;
    response.max_inline_data = queue_pair->limits.max_inline_data;
    response.sq_sig_all      = queue_pair->signal_all ? 1 : 0;
    return call.respond(response);
}

} // namespace ucxl::softhca

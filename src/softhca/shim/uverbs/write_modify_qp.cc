// MODIFY_QP: from the attributes of verbs to the device's commands that change a queue pair's state.
#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>

#include <algorithm>
#include <bit>

#include "call.h"
#include "prm/qp.h"
#include "softhca/shim/objects/qp_object.h"
#include "softhca/shim/objects/qp_path.h"
#include "softhca/shim/objects/qp_transition.h"
#include "softhca/shim/sysfs/device_caps.h"
#include "softhca/shim/sysfs/files.h"
#include "softhca/shim/sysfs/port_attributes.h"
#include "write_commands.h"

namespace ucxl::softhca
{

namespace
{

using modify_mailbox = mailbox<prm::modify_qp_in>;

constexpr std::uint32_t standard_attributes = (IBV_QP_DEST_QPN << 1) - 1;
constexpr std::uint32_t access_mask =
    IB_UVERBS_ACCESS_REMOTE_READ | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t datagram_log_message = 12;
constexpr std::uint32_t gids_in_use          = 1;

// What is wrong with a request whatever the device says.
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
    const auto most_out = 1U << caps.general().get(prm::hca_cap::log_max_ra_res_qp);
    const auto most_in  = 1U << caps.general().get(prm::hca_cap::log_max_ra_req_qp);
    return (has(IBV_QP_MAX_QP_RD_ATOMIC) && request.max_rd_atomic > most_out) ||
                   (has(IBV_QP_MAX_DEST_RD_ATOMIC) && request.max_dest_rd_atomic > most_in)
               ? EINVAL
               : 0;
}

// How many reads and atomics: 0 and 1 are both 2^0, which is why no reads is said by the access bits.
std::uint32_t log_reads(std::uint32_t reads)
{
    return reads == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(reads - 1));
}

void set_access(modify_mailbox& in, const qp_object& queue_pair, const ib_uverbs_modify_qp& request)
{
    const bool changes_access = (request.attr_mask & IBV_QP_ACCESS_FLAGS) != 0;
    const bool changes_reads  = (request.attr_mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0;
    if (!changes_access && !changes_reads) {
        return;
    }
    const std::uint32_t reads = changes_reads ? request.max_dest_rd_atomic : queue_pair.responder_reads;
    std::uint32_t access      = (changes_access ? request.qp_access_flags : queue_pair.access) & access_mask;
    if (reads == 0) {
        access &= IB_UVERBS_ACCESS_REMOTE_WRITE;
    }
    const auto context = in.at(prm::modify_qp_in::qpc);
    in.set(context, prm::qpc::rre, (access & IB_UVERBS_ACCESS_REMOTE_READ) != 0 ? 1 : 0);
    in.set(context, prm::qpc::rwe, (access & IB_UVERBS_ACCESS_REMOTE_WRITE) != 0 ? 1 : 0);
    if ((access & IB_UVERBS_ACCESS_REMOTE_ATOMIC) != 0) {
        in.set(context, prm::qpc::rae, 1);
        in.set(context, prm::qpc::atomic_mode, prm::atomic_mode::up_to_8b);
    }
    in.set(context, prm::qpc::log_rra_max, log_reads(reads));
}

// The attributes that go to a field as they are.
void set_plain_fields(modify_mailbox& in, const ib_uverbs_modify_qp& request)
{
    const auto context = in.at(prm::modify_qp_in::qpc);
    const auto path    = context.at(prm::qpc::primary_address_path);
    const auto put     = [&](std::uint32_t attribute, auto part, auto field, auto value) {
        if ((request.attr_mask & attribute) != 0) {
            in.set(part, field, value);
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

int set_message_size(device_file& file, modify_mailbox& in, const qp_object& queue_pair,
                     const ib_uverbs_modify_qp& request)
{
    const auto context = in.at(prm::modify_qp_in::qpc);
    if (queue_pair.service == prm::qp_service::ud) {
        in.set(context, prm::qpc::mtu, prm::path_mtu::bytes_4096);
        in.set(context, prm::qpc::log_msg_max, datagram_log_message);
        return 0;
    }
    if ((request.attr_mask & IBV_QP_PATH_MTU) == 0) {
        return 0;
    }
    device_caps caps;
    if (const int error = caps.query(file, prm::cap_page::general); error != 0) {
        return error;
    }
    in.set(context, prm::qpc::mtu, request.path_mtu);
    in.set(context, prm::qpc::log_msg_max, caps.general().get(prm::hca_cap::log_max_msg));
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
        mailbox<prm::plain_qp_in> in(transition);
        in.set(prm::plain_qp_in::qpn, queue_pair.qpn);
        return file.run(in);
    }
    modify_mailbox in(transition);
    in.set(prm::modify_qp_in::qpn, queue_pair.qpn);
    in.set(prm::modify_qp_in::opt_param_mask, optional_fields(transition, queue_pair.service, request.attr_mask));
    const bool migrates = (request.attr_mask & IBV_QP_PATH_MIG_STATE) != 0;
    in.set(in.at(prm::modify_qp_in::qpc), prm::qpc::pm_state,
           migrates ? migration_of(request.path_mig_state) : prm::path_migration::migrated);
    if ((request.attr_mask & IBV_QP_AV) != 0) {
        set_path(in, request.dest);
    }
    set_plain_fields(in, request);
    set_access(in, queue_pair, request);
    if (const int error = set_message_size(file, in, queue_pair, request); error != 0) {
        return error;
    }
    prm::storage<prm::modify_qp_out> out;
    return file.run(in, out);
}

// What the next change of state has to know of this one.
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

int modify(uverbs_call& call, const ib_uverbs_modify_qp& request)
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
    return (request.attr_mask & ~standard_attributes) != 0 ? EOPNOTSUPP : modify(call, request);
}

int write_modify_qp_ex(uverbs_call& call)
{
    ib_uverbs_ex_modify_qp request{};
    if (const int error = call.request(request); error != 0) {
        return error;
    }
    // Beyond the standard there are only limits of the sending rate.
    if ((request.base.attr_mask & ~standard_attributes) != 0) {
        return EOPNOTSUPP;
    }
    if (const int error = modify(call, request.base); error != 0) {
        return error;
    }
    const std::size_t room = call.length(UVERBS_ATTR_UHW_OUT);
    mlx5_ib_modify_qp_resp driver{};
    driver.response_length = static_cast<std::uint32_t>(std::min(room, sizeof(driver)));
    if (const int error = call.write(UVERBS_ATTR_UHW_OUT, driver); error != 0) {
        return error;
    }
    ib_uverbs_ex_modify_qp_resp response{};
    response.response_length =
        static_cast<std::uint32_t>(std::min(call.length(UVERBS_ATTR_CORE_OUT), sizeof(response)));
    return call.respond(response);
}

} // namespace ucxl::softhca

// The state machine of queue pairs: the states that each command connects, the fields it requires and those it may
// carry.
#include "call.h"
#include "prm/qp.h"
#include "qp_context.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/queues/completion.h"
#include "softhca/core/queues/dc_stream.h"
#include "softhca/core/queues/queue_work.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;
using prm::qp_optional;
using prm::qp_service;
using prm::qp_state;
using context_view = prm::const_view<prm::qpc>;

constexpr std::uint32_t bits(std::initializer_list<qp_optional> list)
{
    std::uint32_t all = 0;
    for (const qp_optional one : list) {
        all |= std::to_underlying(one);
    }
    return all;
}

constexpr std::uint32_t access_bits =
    bits({qp_optional::remote_read_enable, qp_optional::remote_atomic_enable, qp_optional::remote_write_enable});
constexpr std::uint32_t index_bits = bits({qp_optional::pkey_index, qp_optional::primary_port});
constexpr std::uint32_t tuning_bits =
    bits({qp_optional::rnr_timeout, qp_optional::pm_state, qp_optional::retry_count, qp_optional::rnr_retry,
          qp_optional::ack_timeout, qp_optional::sra_max, qp_optional::rra_max, qp_optional::counter_set_id});

struct transition {
    prm::command opcode;
    qp_state from;
    qp_state to;
    // The bits of opt_param_mask that each service allows; all others are refused.
    std::uint32_t rc;
    std::uint32_t uc;
    std::uint32_t ud;
    std::uint32_t dci;
};

constexpr std::uint32_t write_bit = bits({qp_optional::remote_write_enable});
constexpr std::uint32_t key_bit   = bits({qp_optional::q_key});
constexpr std::uint32_t pm_bit    = bits({qp_optional::pm_state});
constexpr std::uint32_t pkey_bit  = bits({qp_optional::pkey_index});

constexpr std::uint32_t rnr_bit = bits({qp_optional::rnr_timeout});

// The kernel's driver knows no optional fields of DCIs (its opt_mask table); UCX gives remote_atomic_enable with
// init2rtr.
constexpr std::uint32_t atomic_bit = bits({qp_optional::remote_atomic_enable});

constexpr transition transitions[] = {
    {prm::command::rst2init_qp, qp_state::reset, qp_state::init, access_bits | index_bits, write_bit | index_bits,
     key_bit | index_bits, index_bits},
    {prm::command::init2init_qp, qp_state::init, qp_state::init, access_bits | index_bits, write_bit | index_bits,
     key_bit | index_bits, index_bits},
    {prm::command::init2rtr_qp, qp_state::init, qp_state::rtr, access_bits | pkey_bit, write_bit | pkey_bit,
     key_bit | pkey_bit, atomic_bit | pkey_bit},
    {prm::command::rtr2rts_qp, qp_state::rtr, qp_state::rts, access_bits | tuning_bits, write_bit | pm_bit, key_bit,
     rnr_bit},
    {prm::command::rts2rts_qp, qp_state::rts, qp_state::rts, access_bits | tuning_bits, write_bit | pm_bit, key_bit,
     rnr_bit},
    {prm::command::sqerr2rts_qp, qp_state::send_error, qp_state::rts, access_bits | tuning_bits, write_bit | pm_bit,
     key_bit, 0},
    {prm::command::sqd_rts_qp, qp_state::send_drain, qp_state::rts, access_bits | tuning_bits, write_bit | pm_bit,
     key_bit, 0},
};

std::uint32_t allowed(const transition& change, qp_service service)
{
    switch (service) {
    case qp_service::rc:
        return change.rc;
    case qp_service::uc:
        return change.uc;
    case qp_service::dci:
        return change.dci;
    default:
        return change.ud;
    }
}

template <typename... Fields>
void copy(context_view from, prm::view<prm::qpc> to, Fields... fields)
{
    ((void)to.set(fields, from.get(fields)), ...);
}

template <typename... Fields>
void copy_path(context_view from, prm::view<prm::qpc> to, Fields... fields)
{
    const auto path = from.at(prm::qpc::primary_address_path);
    const auto into = to.at(prm::qpc::primary_address_path);
    ((void)into.set(fields, path.get(fields)), ...);
}

// Each optional field whose bit is in the mask.
void copy_optional(context_view from, prm::view<prm::qpc> to, std::uint32_t mask)
{
    const auto asked = [mask](qp_optional one) { return (mask & std::to_underlying(one)) != 0; };
    if (asked(qp_optional::remote_read_enable)) {
        copy(from, to, prm::qpc::rre);
    }
    if (asked(qp_optional::remote_write_enable)) {
        copy(from, to, prm::qpc::rwe);
    }
    if (asked(qp_optional::remote_atomic_enable)) {
        copy(from, to, prm::qpc::rae, prm::qpc::atomic_mode);
    }
    if (asked(qp_optional::q_key)) {
        copy(from, to, prm::qpc::q_key);
    }
    if (asked(qp_optional::rnr_timeout)) {
        copy(from, to, prm::qpc::min_rnr_nak);
    }
    if (asked(qp_optional::pm_state)) {
        copy(from, to, prm::qpc::pm_state);
    }
    if (asked(qp_optional::retry_count)) {
        copy(from, to, prm::qpc::retry_count);
    }
    if (asked(qp_optional::rnr_retry)) {
        copy(from, to, prm::qpc::rnr_retry);
    }
    if (asked(qp_optional::sra_max)) {
        copy(from, to, prm::qpc::log_sra_max);
    }
    if (asked(qp_optional::rra_max)) {
        copy(from, to, prm::qpc::log_rra_max);
    }
    if (asked(qp_optional::counter_set_id)) {
        copy(from, to, prm::qpc::counter_set_id);
    }
    if (asked(qp_optional::ack_timeout)) {
        copy_path(from, to, prm::ads::ack_timeout);
    }
    if (asked(qp_optional::pkey_index)) {
        copy_path(from, to, prm::ads::pkey_index);
    }
    if (asked(qp_optional::primary_port)) {
        copy_path(from, to, prm::ads::vhca_port_num);
    }
}

void copy_destination(context_view from, prm::view<prm::qpc> to)
{
    copy_path(from, to, prm::ads::grh, prm::ads::mlid, prm::ads::rlid, prm::ads::src_addr_index, prm::ads::stat_rate,
              prm::ads::hop_limit, prm::ads::tclass, prm::ads::flow_label, prm::ads::sl);
    std::ranges::copy(from.at(prm::qpc::primary_address_path).at(prm::ads::rgid_rip),
                      to.at(prm::qpc::primary_address_path).at(prm::ads::rgid_rip).begin());
}

// The fields that the command always carries.
void copy_required(prm::command opcode, qp_service service, context_view from, prm::view<prm::qpc> to)
{
    const bool connected = service != qp_service::ud && service != qp_service::dci;
    const bool reliable  = service == qp_service::rc || service == qp_service::dci;
    if (opcode == prm::command::rst2init_qp) {
        copy(from, to, prm::qpc::rre, prm::qpc::rwe, prm::qpc::rae, prm::qpc::atomic_mode, prm::qpc::q_key,
             prm::qpc::pm_state, prm::qpc::counter_set_id);
        copy_path(from, to, prm::ads::pkey_index, prm::ads::vhca_port_num);
    } else if (opcode == prm::command::init2rtr_qp) {
        copy(from, to, prm::qpc::mtu, prm::qpc::log_msg_max);
        if (connected) {
            copy(from, to, prm::qpc::remote_qpn, prm::qpc::next_rcv_psn);
            copy_destination(from, to);
        }
        if (service == qp_service::rc) {
            copy(from, to, prm::qpc::log_rra_max, prm::qpc::min_rnr_nak);
        }
        if (service == qp_service::dci) {
            copy_path(from, to, prm::ads::sl);
        }
    } else if (opcode == prm::command::rtr2rts_qp) {
        copy(from, to, prm::qpc::next_send_psn);
        if (reliable) {
            copy(from, to, prm::qpc::retry_count, prm::qpc::rnr_retry, prm::qpc::log_ack_req_freq,
                 prm::qpc::log_sra_max);
            copy_path(from, to, prm::ads::ack_timeout, prm::ads::log_rtm);
        }
    }
}

command_status check_changed(command_call& call, prm::command opcode, qp_service service, context_view context,
                             std::uint32_t mask)
{
    const auto path = context.at(prm::qpc::primary_address_path);
    if (path.get(prm::ads::vhca_port_num) != 1) {
        return call.refuse(command_status::bad_parameter, "there is one port, number 1");
    }
    if ((mask & pm_bit) != 0 && context.get(prm::qpc::pm_state) != prm::path_migration::migrated) {
        return call.refuse(command_status::bad_parameter, "pm_state: the device cannot migrate paths (apm)");
    }
    if (path.get(prm::ads::pkey_index) >= pkey_table_entries) {
        return call.refuse(command_status::bad_parameter, "pkey_index");
    }
    if (context.get(prm::qpc::atomic_mode) > prm::atomic_mode::up_to_8b) {
        return call.refuse(command_status::bad_parameter, "atomic_mode");
    }
    if (context.get(prm::qpc::log_rra_max) > log_max_reads || context.get(prm::qpc::log_sra_max) > log_max_reads) {
        return call.refuse(command_status::bad_parameter, "log_rra_max or log_sra_max");
    }
    if (opcode != prm::command::init2rtr_qp) {
        return command_status::ok;
    }
    if (context.get(prm::qpc::log_msg_max) > log_max_message) {
        return call.refuse(command_status::bad_parameter, "log_msg_max");
    }
    const prm::path_mtu mtu = context.get(prm::qpc::mtu);
    if (service != qp_service::ud && (mtu < prm::path_mtu::bytes_256 || mtu > prm::path_mtu::bytes_4096)) {
        return call.refuse(command_status::bad_parameter, "mtu");
    }
    if (path.get(prm::ads::grh) && path.get(prm::ads::src_addr_index) >= gid_table_entries) {
        return call.refuse(command_status::bad_parameter, "src_addr_index");
    }
    return command_status::ok;
}

// The transition sets the first sequence numbers; after that the transport counts them.
void set_sequences(qp_record& qp, prm::command opcode, context_view context)
{
    if (opcode == prm::command::init2rtr_qp) {
        qp.expected_psn = context.get(prm::qpc::next_rcv_psn);
    } else if (opcode == prm::command::rtr2rts_qp) {
        qp.send.psn                 = context.get(prm::qpc::next_send_psn);
        qp.send.progress.tries_left = qp.retry_count;
        qp.send.progress.rnr_left   = qp.rnr_retry;
    }
}

const transition* find_transition(prm::command opcode)
{
    const auto found = std::ranges::find(transitions, opcode, &transition::opcode);
    return found == std::end(transitions) ? nullptr : &*found;
}

// Carries out what the extension says: `qp` is the changed record.
command_status apply_extension(command_call& call, prm::const_view<prm::modify_qp_in> input, qp_record& qp,
                               prm::command opcode)
{
    if (!input.get(prm::modify_qp_in::qpc_ext)) {
        return command_status::ok;
    }
    const auto extended = prm::const_view<prm::modify_qp_ext_in>::over(call.input);
    if (!extended) {
        return call.refuse(command_status::bad_input_length, "the extension is not there");
    }
    const std::uint64_t wanted = extended->get(prm::modify_qp_ext_in::opt_param_mask_95_32);
    if (wanted == 0) {
        return command_status::ok;
    }
    const bool resets =
        qp.service == qp_service::dci && qp.state == qp_state::rts && opcode == prm::command::rts2rts_qp;
    if (wanted != prm::optional_dci_stream_channel || !resets) {
        return call.refuse(command_status::bad_parameter, "opt_param_mask_95_32");
    }
    const auto extension = extended->at(prm::modify_qp_ext_in::extension);
    if (!reset_stream(qp, extension.get(prm::qpc_ext::dci_stream_channel_id)) &&
        !call.memory().card.resets_sound_streams) {
        return call.refuse(command_status::bad_resource_state, "the stream channel is not in error");
    }
    return command_status::ok;
}

command_status modify(command_call& call, prm::const_view<prm::modify_qp_in> input, prm::view<prm::modify_qp_out>)
{
    qp_record* const qp      = own_queue_pair(call, input.get(prm::modify_qp_in::qpn));
    const transition& wanted = *find_transition(input.get(prm::modify_qp_in::opcode));
    const std::uint32_t mask = std::to_underlying(input.get(prm::modify_qp_in::opt_param_mask));
    const context_view given = input.at(prm::modify_qp_in::qpc);
    if (qp == nullptr) {
        return call.refuse(command_status::bad_resource, "no such queue pair");
    }
    if (qp->state != wanted.from) {
        return call.refuse(command_status::bad_qp_state, "not in the state this command begins in");
    }
    if ((mask & ~allowed(wanted, qp->service)) != 0) {
        return call.refuse(command_status::bad_parameter, "opt_param_mask");
    }
    qp_record changed                 = *qp;
    const prm::view<prm::qpc> context = *prm::view<prm::qpc>::over(std::as_writable_bytes(std::span(changed.context)));
    if (const auto status = apply_extension(call, input, changed, wanted.opcode); status != command_status::ok) {
        return status;
    }
    copy_required(wanted.opcode, qp->service, given, context);
    copy_optional(given, context, mask);
    if (const auto status = check_changed(call, wanted.opcode, qp->service, context, mask);
        status != command_status::ok) {
        return status;
    }
    load_context(changed, context);
    set_sequences(changed, wanted.opcode, context);
    changed.state = wanted.to;
    *qp           = changed;
    return command_status::ok;
}

command_status to_error(command_call& call, prm::const_view<prm::plain_qp_in> input, prm::view<prm::any_output>)
{
    const std::uint32_t id = input.get(prm::plain_qp_in::qpn);
    qp_record* const qp    = own_queue_pair(call, id);
    if (qp == nullptr) {
        return call.refuse(command_status::bad_resource, "no such queue pair");
    }
    if (qp->state == qp_state::reset) {
        qp->state = qp_state::error; // nothing was posted
    } else {
        fail_queue_pair(call.device, id);
    }
    return command_status::ok;
}

// Resets the queue pair as if it had just been created: nothing posted, counters at zero. Its CQEs stay.
command_status to_reset(command_call& call, prm::const_view<prm::plain_qp_in> input, prm::view<prm::any_output>)
{
    qp_record* const qp = own_queue_pair(call, input.get(prm::plain_qp_in::qpn));
    if (qp == nullptr) {
        return call.refuse(command_status::bad_resource, "no such queue pair");
    }
    release_completions(call.device, *qp);
    qp_record changed          = *qp;
    changed.state              = qp_state::reset;
    changed.send               = {.log_size      = qp->send.log_size,
                                  .present       = qp->send.present,
                                  .is_record_old = true,
                                  .old_record    = qp->send.is_record_old ? qp->send.old_record : qp->send.rung,
                                  .offset        = qp->send.offset};
    changed.receive.consumed   = 0;
    changed.expected_psn       = 0;
    changed.message            = 0;
    changed.last_receive_told  = false;
    changed.dc.errored_streams = 0;
    changed.communication_told = false;
    *qp                        = changed;
    return command_status::ok;
}

constexpr command_entry entries[] = {
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::rst2init_qp),
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::init2init_qp),
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::init2rtr_qp),
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::rtr2rts_qp),
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::rts2rts_qp),
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::sqerr2rts_qp),
    entry<prm::modify_qp_in, prm::modify_qp_out, modify>(prm::command::sqd_rts_qp),
    entry<prm::plain_qp_in, prm::any_output, to_error>(prm::command::to_err_qp),
    entry<prm::plain_qp_in, prm::any_output, to_reset>(prm::command::to_rst_qp),
};

} // namespace

command_entries qp_transition_commands()
{
    return entries;
}

} // namespace ucxl::softhca

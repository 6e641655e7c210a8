#include "qp_transition.h"

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <utility>

namespace ucxl::softhca
{

namespace
{

using prm::command;
using prm::qp_optional;
using prm::qp_service;

// The attributes that a service requires, and those that it allows as well.
struct attribute_set {
    std::uint32_t required = 0;
    std::uint32_t allowed  = 0;
};

struct step {
    std::uint32_t from;
    std::uint32_t to;
    attribute_set rc;
    attribute_set uc;
    attribute_set ud;
    attribute_set dci;
};

constexpr std::uint32_t init_connected = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr std::uint32_t init_datagram  = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
constexpr std::uint32_t receive_uc     = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr std::uint32_t receive_rc     = receive_uc | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr std::uint32_t receive_more   = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
constexpr std::uint32_t send_rc =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr std::uint32_t change_uc = IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE;
constexpr std::uint32_t change_rc = change_uc | IBV_QP_MIN_RNR_TIMER;
constexpr std::uint32_t change_ud = IBV_QP_CUR_STATE | IBV_QP_QKEY;
constexpr std::uint32_t drained   = IBV_QP_EN_SQD_ASYNC_NOTIFY;

constexpr std::uint32_t init_dci = IBV_QP_PKEY_INDEX | IBV_QP_PORT;

// The kernel allows no such change, whatever the attributes are: they would have to include one that does not exist.
constexpr attribute_set never{std::uint32_t{1} << 31, 0};

// In addition every state may change to reset and error. DC initiators as in modify_dci_qp_is_ok() of the kernel's
// driver.
constexpr std::array steps{
    step{IBV_QPS_RESET, IBV_QPS_INIT, {init_connected, 0}, {init_connected, 0}, {init_datagram, 0}, {init_dci, 0}},
    step{IBV_QPS_INIT, IBV_QPS_INIT, {0, init_connected}, {0, init_connected}, {0, init_datagram}, {0, init_dci}},
    step{IBV_QPS_INIT,
         IBV_QPS_RTR,
         {receive_rc, receive_more},
         {receive_uc, receive_more},
         {0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
         {IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX | IBV_QP_AV}},
    step{IBV_QPS_RTR,
         IBV_QPS_RTS,
         {send_rc, change_rc},
         {IBV_QP_SQ_PSN, change_uc},
         {IBV_QP_SQ_PSN, change_ud},
         {send_rc, IBV_QP_MIN_RNR_TIMER}},
    step{IBV_QPS_RTS, IBV_QPS_RTS, {0, change_rc}, {0, change_uc}, {0, change_ud}, {0, IBV_QP_MIN_RNR_TIMER}},
    step{IBV_QPS_RTS, IBV_QPS_SQD, {0, drained}, {0, drained}, {0, drained}, never},
    step{IBV_QPS_SQD, IBV_QPS_RTS, {0, change_rc}, {0, change_uc}, {0, change_ud}, never},
    step{IBV_QPS_SQE, IBV_QPS_RTS, {0, 0}, {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS}, {0, change_ud}, never},
};

const attribute_set& of_service(const step& change, qp_service service)
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

struct optional_field {
    std::uint32_t attribute;
    std::uint32_t fields;
};

constexpr std::uint32_t bits(std::initializer_list<qp_optional> list)
{
    std::uint32_t all = 0;
    for (const qp_optional one : list) {
        all |= std::to_underlying(one);
    }
    return all;
}

constexpr std::uint32_t access_fields =
    bits({qp_optional::remote_read_enable, qp_optional::remote_atomic_enable, qp_optional::remote_write_enable});
constexpr std::uint32_t write_field = bits({qp_optional::remote_write_enable});
constexpr std::uint32_t path_fields = bits({qp_optional::alternate_path, qp_optional::pm_state});

constexpr std::array optional_table{
    optional_field{IBV_QP_ACCESS_FLAGS, access_fields},
    optional_field{IBV_QP_MAX_DEST_RD_ATOMIC, access_fields | bits({qp_optional::rra_max})},
    optional_field{IBV_QP_MAX_QP_RD_ATOMIC, bits({qp_optional::sra_max})},
    optional_field{IBV_QP_PKEY_INDEX, bits({qp_optional::pkey_index})},
    optional_field{IBV_QP_PORT, bits({qp_optional::primary_port})},
    optional_field{IBV_QP_QKEY, bits({qp_optional::q_key})},
    optional_field{IBV_QP_TIMEOUT, bits({qp_optional::ack_timeout})},
    optional_field{IBV_QP_RETRY_CNT, bits({qp_optional::retry_count})},
    optional_field{IBV_QP_RNR_RETRY, bits({qp_optional::rnr_retry})},
    optional_field{IBV_QP_MIN_RNR_TIMER, bits({qp_optional::rnr_timeout})},
    optional_field{IBV_QP_ALT_PATH, bits({qp_optional::alternate_path})},
    optional_field{IBV_QP_PATH_MIG_STATE, bits({qp_optional::pm_state})},
};

// The fields that are optional in each command; it always carries the others.
std::uint32_t optional_of(command transition, qp_service service)
{
    if (service == qp_service::dci) {
        return 0; // as the table opt_mask of the kernel's driver
    }
    const bool datagram     = service == qp_service::ud;
    const bool reliable     = service == qp_service::rc;
    const std::uint32_t key = bits({qp_optional::q_key});
    switch (transition) {
    case command::init2init_qp:
        return bits({qp_optional::pkey_index, qp_optional::primary_port}) | (datagram   ? key
                                                                             : reliable ? access_fields
                                                                                        : write_field);
    case command::init2rtr_qp:
        return bits({qp_optional::pkey_index}) |
               (datagram ? key : bits({qp_optional::alternate_path}) | (reliable ? access_fields : write_field));
    case command::rtr2rts_qp:
    case command::rts2rts_qp:
    case command::sqd_rts_qp:
    case command::sqerr2rts_qp:
        return datagram ? key
                        : path_fields | (reliable ? access_fields | bits({qp_optional::rnr_timeout}) : write_field);
    default:
        return 0;
    }
}

} // namespace

bool may_modify(std::uint32_t from, std::uint32_t to, prm::qp_service service, std::uint32_t attributes)
{
    const bool names_current = (attributes & IBV_QP_CUR_STATE) != 0;
    if (names_current && from != IBV_QPS_RTR && from != IBV_QPS_RTS && from != IBV_QPS_SQD && from != IBV_QPS_SQE) {
        return false;
    }
    // Of a DC initiator only the state can be changed, and not from reset to error.
    if (service == qp_service::dci &&
        ((attributes & IBV_QP_STATE) == 0 || (from == IBV_QPS_RESET && to == IBV_QPS_ERR))) {
        return false;
    }
    attribute_set set;
    if (to != IBV_QPS_RESET && to != IBV_QPS_ERR) {
        const auto found =
            std::ranges::find_if(steps, [=](const step& one) { return one.from == from && one.to == to; });
        if (found == steps.end()) {
            return false;
        }
        set = of_service(*found, service);
    }
    return (attributes & set.required) == set.required &&
           (attributes & ~(set.required | set.allowed | std::uint32_t{IBV_QP_STATE})) == 0;
}

std::optional<prm::command> transition_command(std::uint32_t from, std::uint32_t to)
{
    struct known {
        std::uint32_t from;
        std::uint32_t to;
        command transition;
    };
    static constexpr std::array table{
        known{IBV_QPS_RESET, IBV_QPS_INIT, command::rst2init_qp},
        known{IBV_QPS_INIT, IBV_QPS_INIT, command::init2init_qp},
        known{IBV_QPS_INIT, IBV_QPS_RTR, command::init2rtr_qp},
        known{IBV_QPS_RTR, IBV_QPS_RTS, command::rtr2rts_qp},
        known{IBV_QPS_RTS, IBV_QPS_RTS, command::rts2rts_qp},
        known{IBV_QPS_SQD, IBV_QPS_RTS, command::sqd_rts_qp},
        known{IBV_QPS_SQE, IBV_QPS_RTS, command::sqerr2rts_qp},
    };
    if (to == IBV_QPS_RESET) {
        return command::to_rst_qp;
    }
    if (to == IBV_QPS_ERR) {
        return command::to_err_qp;
    }
    const auto found = std::ranges::find_if(table, [=](const known& one) { return one.from == from && one.to == to; });
    return found == table.end() ? std::nullopt : std::optional(found->transition);
}

std::uint32_t optional_fields(prm::command transition, prm::qp_service service, std::uint32_t attributes)
{
    std::uint32_t fields = 0;
    for (const optional_field& one : optional_table) {
        if ((attributes & one.attribute) != 0) {
            fields |= one.fields;
        }
    }
    return fields & optional_of(transition, service);
}

std::uint32_t verbs_state(prm::qp_state state)
{
    switch (state) {
    case prm::qp_state::reset:
        return IBV_QPS_RESET;
    case prm::qp_state::init:
        return IBV_QPS_INIT;
    case prm::qp_state::rtr:
        return IBV_QPS_RTR;
    case prm::qp_state::rts:
        return IBV_QPS_RTS;
    case prm::qp_state::send_error:
        return IBV_QPS_SQE;
    case prm::qp_state::send_drain:
    case prm::qp_state::send_draining:
    case prm::qp_state::suspended:
        return IBV_QPS_SQD;
    case prm::qp_state::error:
        break;
    }
    return IBV_QPS_ERR;
}

} // namespace ucxl::softhca

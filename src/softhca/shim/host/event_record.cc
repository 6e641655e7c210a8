#include "event_record.h"

#include <cstring>

#include <infiniband/verbs.h>

#include "prm/eq.h"

namespace ucxl::softhca
{

namespace
{

constexpr std::uint32_t format_bits = 4;
constexpr std::uint32_t format_mask = (1U << format_bits) - 1;

// The bit of an event in the kind of a DEVX route: events below 0x08 and from 0x10 to 0x1f have one.
std::uint32_t subscription_bit(std::uint32_t type)
{
    if (type < 0x08) {
        return 1U << (format_bits + type);
    }
    if (type >= 0x10 && type < 0x20) {
        return 1U << (format_bits + type - 0x08);
    }
    return 0;
}

// The event in libibverbs; -1 when it does not know it.
int verbs_event(std::uint32_t type)
{
    switch (static_cast<prm::event_type>(type)) {
    case prm::event_type::path_migrated:
        return IBV_EVENT_PATH_MIG;
    case prm::event_type::comm_established:
        return IBV_EVENT_COMM_EST;
    case prm::event_type::send_queue_drained:
        return IBV_EVENT_SQ_DRAINED;
    case prm::event_type::cq_error:
        return IBV_EVENT_CQ_ERR;
    case prm::event_type::wq_catastrophic_error:
        return IBV_EVENT_QP_FATAL;
    case prm::event_type::path_migration_failed:
        return IBV_EVENT_PATH_MIG_ERR;
    case prm::event_type::local_catastrophic:
        return IBV_EVENT_DEVICE_FATAL;
    case prm::event_type::port_state_change:
        return IBV_EVENT_PORT_ACTIVE;
    case prm::event_type::wq_invalid_request:
        return IBV_EVENT_QP_REQ_ERR;
    case prm::event_type::wq_access_error:
        return IBV_EVENT_QP_ACCESS_ERR;
    case prm::event_type::srq_catastrophic:
        return IBV_EVENT_SRQ_ERR;
    case prm::event_type::srq_last_wqe:
        return IBV_EVENT_QP_LAST_WQE_REACHED;
    case prm::event_type::srq_limit_reached:
        return IBV_EVENT_SRQ_LIMIT_REACHED;
    case prm::event_type::completion:
    case prm::event_type::command_done:
    case prm::event_type::page_request:
    case prm::event_type::page_fault:
    case prm::event_type::gpio:
    case prm::event_type::dct_drained:
    case prm::event_type::dct_key_violation:
    case prm::event_type::object_change:
        break;
    }
    return -1;
}

void put_queue_entry(std::span<std::byte> bytes, std::uint32_t type, std::uint32_t object)
{
    const auto entry = prm::view<prm::eqe>::over(bytes);
    (void)entry->set(prm::eqe::event_type, type);
    const auto data = std::span<std::byte>(entry->at(prm::eqe::event_data));
    switch (static_cast<prm::event_type>(type)) {
    case prm::event_type::completion:
        (void)prm::view<prm::event_completion>::over(data)->set(prm::event_completion::cqn, object);
        break;
    case prm::event_type::cq_error:
        (void)prm::view<prm::event_cq_error>::over(data)->set(prm::event_cq_error::cqn, object);
        break;
    case prm::event_type::dct_drained:
    case prm::event_type::dct_key_violation:
        (void)prm::view<prm::event_dct>::over(data)->set(prm::event_dct::dctn, object);
        break;
    default:
        (void)prm::view<prm::event_qp_srq>::over(data)->set(prm::event_qp_srq::qp_srq_n, object);
        break;
    }
}

} // namespace

event_format format_of(std::uint32_t kind)
{
    return static_cast<event_format>(kind & format_mask);
}

std::size_t event_bytes(event_format format)
{
    switch (format) {
    case event_format::completion:
    case event_format::devx:
        return sizeof(std::uint64_t);
    case event_format::async:
        return 2 * sizeof(std::uint64_t);
    case event_format::devx_data:
        return sizeof(std::uint64_t) + prm::eqe::size_bytes;
    }
    return 0;
}

bool subscribe(std::uint32_t& kind, std::uint32_t type)
{
    const std::uint32_t bit = subscription_bit(type);
    kind |= bit;
    return bit != 0;
}

event_record format_event(const event_route& route, std::uint32_t type)
{
    event_record event;
    std::memcpy(event.bytes.data(), &route.value, sizeof(route.value));
    const event_format format = format_of(route.kind);
    switch (format) {
    case event_format::completion:
        event.length = event_bytes(format);
        break;
    case event_format::async: {
        const int verbs = verbs_event(type);
        std::memcpy(event.bytes.data() + sizeof(route.value), &verbs, sizeof(verbs));
        event.length = verbs < 0 ? 0 : event_bytes(format);
        break;
    }
    case event_format::devx_data:
        put_queue_entry(std::span(event.bytes).subspan(sizeof(route.value)), type, route.object);
        [[fallthrough]];
    case event_format::devx:
        event.length = (route.kind & subscription_bit(type)) != 0 ? event_bytes(format) : 0;
        break;
    }
    return event;
}

} // namespace ucxl::softhca

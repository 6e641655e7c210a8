#include "event_record.h"

#include <algorithm>
#include <cstring>

#include <infiniband/verbs.h>

#include "prm/eq.h"

namespace ucxl::softhca
{

namespace
{

// No event has only such bytes: the first ones are an address or a small number.
constexpr std::byte end_mark{0xff};

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

// As handle_port_change in the kernel's infiniband/hw/mlx5/main.c.
int verbs_port_event(std::uint8_t subtype)
{
    switch (static_cast<prm::port_change>(subtype)) {
    case prm::port_change::active:
        return IBV_EVENT_PORT_ACTIVE;
    case prm::port_change::down:
    case prm::port_change::initialized:
        return IBV_EVENT_PORT_ERR;
    case prm::port_change::lid:
        return IBV_EVENT_LID_CHANGE;
    case prm::port_change::pkey:
        return IBV_EVENT_PKEY_CHANGE;
    case prm::port_change::guid:
        return IBV_EVENT_GID_CHANGE;
    case prm::port_change::client_reregister:
        return IBV_EVENT_CLIENT_REREGISTER;
    }
    return -1;
}

// The event in libibverbs; -1 when it does not know it.
int verbs_event(std::uint32_t code)
{
    switch (prm::type_of_event(code)) {
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
        return verbs_port_event(prm::subtype_of_event(code));
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

void put_queue_entry(std::span<std::byte> bytes, std::uint32_t code, std::uint32_t object)
{
    const auto entry = prm::view<prm::eqe>::over(bytes);
    (void)entry->set(prm::eqe::event_type, prm::type_of_event(code));
    const auto data = std::span<std::byte>(entry->at(prm::eqe::event_data));
    switch (prm::type_of_event(code)) {
    case prm::event_type::completion:
        (void)prm::view<prm::event_completion>::over(data)->set(prm::event_completion::cqn, object);
        break;
    case prm::event_type::cq_error:
        (void)prm::view<prm::event_cq_error>::over(data)->set(prm::event_cq_error::cqn, object);
        prm::view<prm::event_cq_error>::over(data)->put(prm::event_cq_error::syndrome, prm::subtype_of_event(code));
        break;
    case prm::event_type::dct_drained:
    case prm::event_type::dct_key_violation:
        (void)prm::view<prm::event_dct>::over(data)->set(prm::event_dct::dctn, object);
        break;
    default:
        entry->put(prm::eqe::event_sub_type, prm::subtype_of_event(code));
        (void)prm::view<prm::event_qp_srq>::over(data)->set(prm::event_qp_srq::qp_srq_n, object);
        break;
    }
}

} // namespace

event_format format_of(std::uint32_t kind)
{
    return static_cast<event_format>(kind & format_mask);
}

std::size_t ends_behind(std::span<const std::byte> events, event_format format)
{
    std::size_t left = events.size();
    for (const std::size_t size = event_bytes(format); left >= size; left -= size) {
        const auto last = events.subspan(left - size, size);
        if (std::ranges::any_of(last, [](std::byte one) { return one != end_mark; })) {
            break;
        }
    }
    return left;
}

std::size_t event_bytes(event_format format)
{
    switch (format) {
    case event_format::completion:
    case event_format::devx:
    case event_format::devx_count:
    case event_format::devx_answer:
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
    const event_format format = format_of(route.kind);
    if (type == channel_ends) {
        event.length = event_bytes(format);
        std::fill_n(event.bytes.begin(), event.length, end_mark);
        return event;
    }
    std::memcpy(event.bytes.data(), &route.value, sizeof(route.value));
    const bool wanted = (route.kind & subscription_bit(type & 0xff)) != 0; // by the subscriptions of DEVX
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
    case event_format::devx_count: {
        constexpr std::uint64_t one = 1;
        std::memcpy(event.bytes.data(), &one, sizeof(one));
        event.length = wanted ? event_bytes(format) : 0;
        break;
    }
    case event_format::devx_answer:
        break;
    case event_format::devx_data:
        put_queue_entry(std::span(event.bytes).subspan(sizeof(route.value)), type, route.object);
        [[fallthrough]];
    case event_format::devx:
        event.length = wanted ? event_bytes(format) : 0;
        break;
    }
    return event;
}

} // namespace ucxl::softhca

#include "dc_target.h"

#include <algorithm>

#include "async_events.h"
#include "connection.h"

namespace ucxl::softhca
{

namespace
{

using compact = prm::wqe_compact_address_vector;
using whole   = prm::wqe_address_vector;

// A port accepts a global route header with its own GID only (InfiniBand specification, volume 1, "GRH checks").
bool routes_to(const send_request& request, const function_record& function)
{
    const auto full = prm::const_view<whole>::over(request.address);
    if (!full || !full->get(whole::grh)) {
        return true;
    }
    return std::ranges::equal(full->at(whole::rgid), port_gid(function));
}

void violate(environment& device, qp_record& target)
{
    target.dc.violations++;
    if (target.dc.armed) {
        target.dc.armed = false;
        notify_queue_pair(device, target, prm::event_type::dct_key_violation);
    }
}

} // namespace

std::uint32_t target_of(const send_request& request)
{
    const auto address = prm::const_view<compact>::over(request.address);
    return address ? address->get(compact::destination_qpn) : 0;
}

qp_record* find_target(environment& device, const send_request& request)
{
    const auto address = prm::const_view<compact>::over(request.address);
    if (!address) {
        return nullptr;
    }
    arena& memory = device.memory;
    qp_record* const found =
        find_receiver(memory, address->get(compact::rlid), target_of(request), prm::qp_service::dci);
    if (found == nullptr || !found->dc.target ||
        !(memory.card.ignores_routes || routes_to(request, memory.function_table[found->owner.function]))) {
        return nullptr;
    }
    if (address->get(compact::dc_key) != found->dc.access_key) {
        violate(device, *found);
        return nullptr;
    }
    return found;
}

} // namespace ucxl::softhca

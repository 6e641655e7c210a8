#include "device_failure.h"

#include <array>

#include "prm/eq.h"
#include "record_table.h"

namespace ucxl::softhca
{

void fail_device(environment& device, function_id function)
{
    arena& memory             = device.memory;
    const std::uint32_t index = memory.function_table[function].device;
    memory.failed_devices |= 1U << index;
    // Every process that has opened the device has a doorbell page of it.
    std::array<bool, max_clients> told{};
    for_each_live(memory.uars, [&](std::uint32_t, const uar_record& page) {
        const client_id user = page.owner.client;
        if (memory.function_table[page.owner.function].device != index || told[user]) {
            return;
        }
        told[user] = true;
        memory.counts.async_events++;
        device.outside.notify(user, memory.clients[user].async_events,
                              static_cast<std::uint32_t>(prm::event_type::local_catastrophic));
    });
}

bool ends_an_object(prm::command opcode)
{
    switch (opcode) {
    case prm::command::destroy_mkey:
    case prm::command::destroy_cq:
    case prm::command::destroy_qp:
    case prm::command::destroy_srq:
    case prm::command::drain_dct:
    case prm::command::destroy_dct:
    case prm::command::destroy_rmp:
    case prm::command::destroy_umem:
    case prm::command::destroy_general_object:
    case prm::command::dealloc_pd:
    case prm::command::dealloc_uar:
        return true;
    default:
        return false;
    }
}

} // namespace ucxl::softhca

// What the kernel does without a command: user memory, doorbell pages, device memory, and the routes of events.
#include "fabric.h"

#include <atomic>

#include "prm/resource.h"
#include "softhca/core/arena/cost.h"
#include "softhca/core/arena/device_failure.h"
#include "softhca/core/arena/fault_plan.h"
#include "softhca/core/commands/call.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;

template <typename Record, std::size_t Count>
Record* own_record(const environment& device, table<Record, Count>& records, std::uint32_t id)
{
    Record* const found = records.find(id);
    return found != nullptr && found->owner.client == device.self ? found : nullptr;
}

template <typename Record, std::size_t Count>
command_status end_object(const environment& device, table<Record, Count>& records, std::uint32_t id)
{
    const Record* const found = own_record(device, records, id);
    if (found == nullptr) {
        return command_status::bad_resource;
    }
    if (found->users != 0) {
        return command_status::bad_resource_state;
    }
    retire(records, id);
    return command_status::ok;
}

template <typename Record, std::size_t Count>
std::optional<event_route> exchange_route(const environment& device, table<Record, Count>& records, std::uint32_t id,
                                          event_route Record::* route_member, const event_route& route)
{
    Record* const found = own_record(device, records, id);
    if (found == nullptr) {
        return std::nullopt;
    }
    return std::exchange(found->*route_member, route);
}

// The first page of a free run.
std::optional<std::size_t> find_memic(const memic_device& device, std::size_t pages)
{
    std::size_t run = 0;
    for (std::size_t page = 0; page < memic_pages; ++page) {
        run = device.taken[page] == 0 ? run + 1 : 0;
        if (run == pages) {
            return page + 1 - pages;
        }
    }
    return std::nullopt;
}

bool has_key(arena& memory, std::uint64_t first, std::uint64_t bytes)
{
    bool found = false;
    for_each_live(memory.mkeys, [&](std::uint32_t, const mkey_record& key) {
        found = found ||
                (key.backing == mkey_backing::memic && key.host_address >= first && key.host_address - first < bytes);
    });
    return found;
}

void count_memic(arena& memory, memic_device& device, std::int64_t change)
{
    device.used_bytes        = static_cast<std::uint32_t>(device.used_bytes + change);
    memory.counts.memic_used = static_cast<std::uint64_t>(static_cast<std::int64_t>(memory.counts.memic_used) + change);
    memory.counts.memic_used_max = std::max(memory.counts.memic_used_max, memory.counts.memic_used);
}

} // namespace

std::expected<std::uint32_t, command_status> fabric::create_umem(function_id function, std::uint16_t uid,
                                                                 std::uint64_t address, std::uint64_t length,
                                                                 std::uint32_t access)
{
    if (function >= _device.memory.functions || length == 0 || length - 1 > ~std::uint64_t{0} - address) {
        return std::unexpected(command_status::bad_parameter);
    }
    std::uint32_t id = 0;
    {
        const locked guard(_device);
        command_call call{_device, _queue_pairs, function, uid, {}, {}};
        id = find_room(call, _device.memory.umems);
        if (id == 0) {
            return std::unexpected(command_status::limit_exceeded);
        }
        umem_record& made = fresh(_device.memory.umems, id);
        made.address      = address;
        made.length       = length;
        made.access       = access;
        publish(_device.memory.umems, id, call.owner());
    }
    // Memory that the kernel registers for itself is part of the cost of the key.
    if (const std::uint64_t cost = uid == 0 ? 0 : umem_cost(static_cast<card_times>(_device.memory.times), length)) {
        _device.outside.spend(cost);
    }
    return id;
}

command_status fabric::destroy_umem(std::uint32_t umem)
{
    const locked guard(_device);
    return end_object(_device, _device.memory.umems, umem);
}

std::expected<std::uint32_t, command_status> fabric::alloc_uar(function_id function)
{
    if (function >= _device.memory.functions) {
        return std::unexpected(command_status::bad_parameter);
    }
    const locked guard(_device);
    command_call call{_device, _queue_pairs, function, 0, {}, {}};
    const std::uint32_t id = find_room(call, _device.memory.uars);
    if (id == 0) {
        return std::unexpected(command_status::limit_exceeded);
    }
    fresh(_device.memory.uars, id);
    publish(_device.memory.uars, id, call.owner());
    return id;
}

command_status fabric::free_uar(std::uint32_t uar)
{
    const locked guard(_device);
    return end_object(_device, _device.memory.uars, uar);
}

std::expected<std::uint64_t, command_status> fabric::alloc_memic(function_id function, std::uint64_t length,
                                                                 unsigned log_alignment)
{
    constexpr std::uint64_t page_alignment = 6; // 64 << 6
    if (function >= _device.memory.functions || length == 0 || log_alignment > page_alignment) {
        return std::unexpected(command_status::bad_parameter);
    }
    if (length > memic_bytes) {
        return std::unexpected(command_status::no_resources);
    }
    const locked guard(_device);
    arena& memory           = _device.memory;
    memic_device& device    = memory.memic[memory.function_table[function].device];
    const std::size_t pages = (length + memic_page_bytes - 1) / memic_page_bytes;
    const auto bytes        = pages * memic_page_bytes;
    if (beyond_limit(memory, fault_kind::memic_limit, memory.counts.memic_used + bytes)) {
        return std::unexpected(command_status::no_resources);
    }
    auto first = find_memic(device, pages);
    if (!first && release_dead_clients(_device) != 0) {
        first = find_memic(device, pages);
    }
    if (!first) {
        return std::unexpected(command_status::no_resources);
    }
    std::fill_n(device.taken.begin() + static_cast<std::ptrdiff_t>(*first), pages, std::uint8_t{1});
    device.length[*first] = static_cast<std::uint32_t>(pages);
    device.owner[*first]  = {life::free, memory.function_table[function].incarnation, _device.self, function, 0};
    detail::set_life(device.owner[*first], life::live);
    count_memic(memory, device, static_cast<std::int64_t>(bytes));
    return *first * memic_page_bytes;
}

command_status fabric::free_memic(function_id function, std::uint64_t offset)
{
    const locked guard(_device);
    arena& memory = _device.memory;
    if (function >= memory.functions || offset >= memic_bytes || offset % memic_page_bytes != 0) {
        return command_status::bad_parameter;
    }
    const std::uint32_t index = memory.function_table[function].device;
    memic_device& device      = memory.memic[index];
    const std::size_t first   = offset / memic_page_bytes;
    const ownership& owner    = device.owner[first];
    if (owner.life != life::live || owner.client != _device.self || owner.function != function) {
        return command_status::bad_resource;
    }
    const std::size_t pages = device.length[first];
    if (has_key(memory, index * memic_bytes + offset, pages * memic_page_bytes)) {
        return command_status::resource_busy;
    }
    detail::set_life(device.owner[first], life::free);
    std::fill_n(device.taken.begin() + static_cast<std::ptrdiff_t>(first), pages, std::uint8_t{0});
    count_memic(memory, device, -static_cast<std::int64_t>(pages * memic_page_bytes));
    return command_status::ok;
}

command_status fabric::replace_region(function_id function, std::uint32_t key, std::span<const std::byte> create_mkey)
{
    if (function >= _device.memory.functions) {
        return command_status::bad_parameter;
    }
    command_call call{_device, _queue_pairs, function, 0, create_mkey, {}};
    command_status status;
    {
        const locked guard(_device);
        status = softhca::replace_region(call, key);
    }
    if (call.cost_ns != 0) {
        _device.outside.spend(call.cost_ns);
    }
    return status;
}

std::size_t fabric::memic_offset(function_id function) const
{
    const arena& memory        = _device.memory;
    const std::uint32_t device = function < memory.functions ? memory.function_table[function].device : 0;
    return static_cast<std::size_t>(memory.memic[device].bytes.data() -
                                    reinterpret_cast<const std::byte*>(&_device.memory));
}

std::optional<event_route> fabric::route_completions(std::uint32_t cqn, const event_route& route)
{
    const locked guard(_device);
    return exchange_route(_device, _device.memory.cqs, cqn, &cq_record::completion_events, route);
}

std::optional<event_route> fabric::route_cq_errors(std::uint32_t cqn, const event_route& route)
{
    const locked guard(_device);
    return exchange_route(_device, _device.memory.cqs, cqn, &cq_record::error_events, route);
}

std::optional<event_route> fabric::route_queue_pair(std::uint32_t qpn, const event_route& route)
{
    const locked guard(_device);
    return exchange_route(_device, _device.memory.qps, qpn, &qp_record::events, route);
}

std::optional<event_route> fabric::route_shared_receive_queue(std::uint32_t srqn, const event_route& route)
{
    const locked guard(_device);
    return exchange_route(_device, _device.memory.srqs, srqn, &srq_record::events, route);
}

std::uint32_t fabric::add_channel(function_id function, const event_route& route, bool gets_device_events)
{
    if (function >= _device.memory.functions) {
        return 0;
    }
    const locked guard(_device);
    command_call call{_device, _queue_pairs, function, 0, {}, {}};
    const std::uint32_t id = find_room(call, _device.memory.channels);
    if (id != 0) {
        channel_record& made    = fresh(_device.memory.channels, id);
        made.gets_device_events = gets_device_events;
        made.route              = route;
        publish(_device.memory.channels, id, call.owner());
    }
    return id;
}

void fabric::count_left_keys(std::size_t keys)
{
    const locked guard(_device);
    _device.memory.counts.keys_left += keys;
}

void fabric::drop_channel(std::uint32_t channel)
{
    const locked guard(_device);
    if (own_record(_device, _device.memory.channels, channel) != nullptr) {
        retire(_device.memory.channels, channel);
    }
}

bool fabric::cut_off(function_id function, std::uint8_t incarnation) const
{
    if (function >= _device.memory.functions) {
        return false;
    }
    const std::atomic_ref now(_device.memory.function_table[function].incarnation);
    return now.load(std::memory_order_acquire) != incarnation;
}

bool fabric::change(device_change change, std::uint64_t time_ns)
{
    if (change.function >= _device.memory.functions) {
        return false;
    }
    const locked guard(_device);
    apply_due_changes(_device);
    if (time_ns == 0) {
        change_device(_device, change);
    } else {
        change.at_ns = _device.outside.now_ns() + time_ns;
        schedule_change(_device, change);
    }
    return true;
}

} // namespace ucxl::softhca

// Protection domains, doorbell pages, user memory and flow counters.
#include "prm/resource.h"

#include "call.h"

namespace ucxl::softhca
{

std::optional<process_memory> umem_range(const command_call& call, std::uint32_t umem, std::uint64_t offset,
                                         std::uint64_t length)
{
    const umem_record* const found = call.memory().umems.find(umem);
    // The kernel pins memory for all contexts of its process.
    const bool kernels = found != nullptr && found->owner.uid == 0 && found->owner.client == call.device.self &&
                         found->owner.function == call.function;
    if (found == nullptr || (!kernels && !belongs(call, found->owner)) || offset > found->length ||
        length > found->length - offset) {
        return std::nullopt;
    }
    return process_memory{found->owner.client, found->address + offset, length};
}

namespace
{

using prm::command_status;

command_status alloc_pd(command_call& call, prm::const_view<prm::any_input>, prm::view<prm::alloc_pd_out> output)
{
    const std::uint32_t id = find_room(call, call.memory().pds);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all protection domains are taken");
    }
    fresh(call.memory().pds, id);
    publish(call.memory().pds, id, call.owner());
    (void)output.set(prm::alloc_pd_out::pd, id);
    return command_status::ok;
}

// PDs, UARs and UMEMs are only numbers with a count of users.
template <typename Record, std::size_t Count>
command_status end_simple(command_call& call, table<Record, Count>& records, std::uint32_t id)
{
    const Record* const found = own(call, records, id);
    if (found == nullptr) {
        return call.refuse(command_status::bad_resource, "no such object");
    }
    if (found->users != 0) {
        return call.refuse(command_status::bad_resource_state, "other objects use it");
    }
    retire(records, id);
    return command_status::ok;
}

command_status dealloc_pd(command_call& call, prm::const_view<prm::dealloc_pd_in> input, prm::view<prm::any_output>)
{
    return end_simple(call, call.memory().pds, input.get(prm::dealloc_pd_in::pd));
}

command_status alloc_uar(command_call& call, prm::const_view<prm::any_input>, prm::view<prm::alloc_uar_out> output)
{
    const std::uint32_t id = find_room(call, call.memory().uars);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all doorbell pages are taken");
    }
    fresh(call.memory().uars, id);
    publish(call.memory().uars, id, call.owner());
    (void)output.set(prm::alloc_uar_out::uar, id);
    return command_status::ok;
}

command_status dealloc_uar(command_call& call, prm::const_view<prm::dealloc_uar_in> input, prm::view<prm::any_output>)
{
    return end_simple(call, call.memory().uars, input.get(prm::dealloc_uar_in::uar));
}

// One by one: flow_counter_bulk_alloc is off.
command_status alloc_flow_counter(command_call& call, prm::const_view<prm::alloc_flow_counter_in> input,
                                  prm::view<prm::alloc_flow_counter_out> output)
{
    if (input.get(prm::alloc_flow_counter_in::flow_counter_bulk) != 0) {
        return call.refuse(command_status::bad_parameter, "flow_counter_bulk");
    }
    const std::uint32_t id = find_room(call, call.memory().flow_counters);
    if (id == 0) {
        return call.refuse(command_status::limit_exceeded, "all flow counters are taken");
    }
    fresh(call.memory().flow_counters, id);
    publish(call.memory().flow_counters, id, call.owner());
    output.put(prm::alloc_flow_counter_out::flow_counter_id, id);
    return command_status::ok;
}

command_status query_flow_counter(command_call& call, prm::const_view<prm::query_flow_counter_in> input,
                                  prm::view<prm::query_flow_counter_out>)
{
    if (own(call, call.memory().flow_counters, input.get(prm::query_flow_counter_in::flow_counter_id)) == nullptr) {
        return call.refuse(command_status::bad_resource, "no such flow counter");
    }
    if (input.get(prm::query_flow_counter_in::dump_to_memory) ||
        input.get(prm::query_flow_counter_in::num_of_counters) > 1) {
        return call.refuse(command_status::bad_parameter, "counters are queried one by one, into the answer");
    }
    return command_status::ok;
}

command_status dealloc_flow_counter(command_call& call, prm::const_view<prm::dealloc_flow_counter_in> input,
                                    prm::view<prm::any_output>)
{
    return end_simple(call, call.memory().flow_counters, input.get(prm::dealloc_flow_counter_in::flow_counter_id));
}

// CREATE_UMEM names physical pages, which do not exist here. fabric::create_umem() replaces it.
command_status destroy_umem(command_call& call, prm::const_view<prm::destroy_umem_in> input, prm::view<prm::any_output>)
{
    return end_simple(call, call.memory().umems, input.get(prm::destroy_umem_in::umem_id));
}

constexpr command_entry entries[] = {
    entry<prm::any_input, prm::alloc_pd_out, alloc_pd>(prm::command::alloc_pd),
    entry<prm::dealloc_pd_in, prm::any_output, dealloc_pd>(prm::command::dealloc_pd),
    entry<prm::any_input, prm::alloc_uar_out, alloc_uar>(prm::command::alloc_uar),
    entry<prm::dealloc_uar_in, prm::any_output, dealloc_uar>(prm::command::dealloc_uar),
    entry<prm::alloc_flow_counter_in, prm::alloc_flow_counter_out, alloc_flow_counter>(
        prm::command::alloc_flow_counter),
    entry<prm::query_flow_counter_in, prm::query_flow_counter_out, query_flow_counter>(
        prm::command::query_flow_counter),
    entry<prm::dealloc_flow_counter_in, prm::any_output, dealloc_flow_counter>(prm::command::dealloc_flow_counter),
    entry<prm::destroy_umem_in, prm::any_output, destroy_umem>(prm::command::destroy_umem),
};

} // namespace

command_entries resource_commands()
{
    return entries;
}

} // namespace ucxl::softhca

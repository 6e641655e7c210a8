// The commands about a port. Each function has one InfiniBand port. The work of a subnet manager is done as soon
// as it is up.
#include "prm/port.h"

#include "call.h"
#include "softhca/core/arena/limits.h"

namespace ucxl::softhca
{

namespace
{

using prm::command_status;

// PortInfo:PortPhysicalState (IBTA vol. 1, 14.2.5.6): without a link the port polls for one.
constexpr std::uint8_t physically_polling = 2;
constexpr std::uint8_t physically_up      = 5;

// A function may ask only about its own vport, as port 0 or 1.
template <typename In>
bool is_own_port(In input)
{
    using structure = typename In::structure_type;
    return !input.get(structure::other_vport) && input.get(structure::port_num) <= 1 &&
           input.get(structure::vport_number) == 0;
}

command_status query_vport(command_call& call, prm::const_view<prm::query_hca_vport_context_in> input,
                           prm::view<prm::query_hca_vport_context_out> output)
{
    if (!is_own_port(input)) {
        return call.refuse(command_status::bad_parameter, "no such port");
    }
    const function_record& self = call.caller();
    const auto context          = output.at(prm::query_hca_vport_context_out::context);
    const auto state            = self.port_up ? prm::vport_state::active : prm::vport_state::down;
    (void)context.set(prm::hca_vport_context::port_physical_state, self.port_up ? physically_up : physically_polling);
    (void)context.set(prm::hca_vport_context::port_state, std::to_underlying(state));
    (void)context.set(prm::hca_vport_context::vport_state, state);
    context.put(prm::hca_vport_context::system_image_guid, self.image_guid);
    context.put(prm::hca_vport_context::port_guid, self.port_guid);
    context.put(prm::hca_vport_context::node_guid, self.node_guid);
    context.put(prm::hca_vport_context::lid, self.lid);
    context.put<true>(prm::hca_vport_context::has_smi);
    context.put<1>(prm::hca_vport_context::sm_lid);
    return command_status::ok;
}

command_status query_gid(command_call& call, prm::const_view<prm::query_hca_vport_gid_in> input,
                         prm::view<prm::query_hca_vport_gid_out> output)
{
    // The whole table, or one entry: the same, because the table has one entry.
    constexpr std::uint16_t whole_table = 0xffff;
    const std::uint16_t index           = input.get(prm::query_hca_vport_gid_in::gid_index);
    if (!is_own_port(input)) {
        return call.refuse(command_status::bad_parameter, "no such port");
    }
    if (index != whole_table && index >= gid_table_entries) {
        return call.refuse(command_status::bad_index, "gid_index");
    }
    const auto gid = output.at(prm::query_hca_vport_gid_out::gid0);
    output.put<1>(prm::query_hca_vport_gid_out::gids_num);
    gid.put(prm::gid::prefix, default_gid_prefix);
    gid.put(prm::gid::guid, call.caller().port_guid);
    return command_status::ok;
}

// There is no link aggregation: all fields are zero.
command_status query_lag(command_call&, prm::const_view<prm::any_input>, prm::view<prm::query_lag_out>)
{
    return command_status::ok;
}

// Some programs declare the answer four bytes too short and do not read those.
constexpr std::size_t short_vport_answer = prm::query_hca_vport_context_out::size_bytes - 4;

constexpr command_entry entries[] = {
    entry<prm::query_hca_vport_context_in, prm::query_hca_vport_context_out, query_vport>(
        prm::command::query_hca_vport_context, short_vport_answer),
    entry<prm::query_hca_vport_gid_in, prm::query_hca_vport_gid_out, query_gid>(prm::command::query_hca_vport_gid),
    entry<prm::any_input, prm::query_lag_out, query_lag>(prm::command::query_lag),
};

} // namespace

command_entries port_commands()
{
    return entries;
}

} // namespace ucxl::softhca

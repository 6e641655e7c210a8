// The capabilities of a function, and its port.
#include "commander.h"

#include <gtest/gtest.h>

#include "prm/hca_cap_pages.h"
#include "prm/port.h"
#include "softhca/core/arena/limits.h"
#include "softhca/core/keys/access.h"

namespace ucxl::softhca::test
{
namespace
{

using prm::command;
using prm::command_status;
using prm::hca_cap;

class command_port : public ::testing::Test
{
protected:
    command_status query(prm::cap_page page, bool current = true, std::size_t out_bytes = 4112)
    {
        prm::storage<prm::query_hca_cap_in> input;
        (*input).put<command::query_hca_cap>(prm::query_hca_cap_in::opcode);
        const auto op_mod = std::to_underlying(page) << 1 | (current ? prm::cap_current : 0);
        EXPECT_TRUE((*input).set(prm::query_hca_cap_in::op_mod, op_mod));
        return device.send(input.bytes, out_bytes);
    }

    template <typename S>
    prm::const_view<S> page()
    {
        return *prm::const_view<S>::over(device.out_bytes().subspan(16));
    }

    test_machine machine{{.devices = 1, .functions_per_device = 2}};
    commander device{machine.start(), 1, 1};
};

TEST_F(command_port, capabilities_say_what_is_modelled)
{
    ASSERT_EQ(query(prm::cap_page::general), command_status::ok);
    const auto cap = page<hca_cap>();
    EXPECT_TRUE(cap.get(hca_cap::rc) && cap.get(hca_cap::uc) && cap.get(hca_cap::ud) && cap.get(hca_cap::dct));
    EXPECT_EQ(cap.get(hca_cap::log_max_dci_stream_channels), 6);
    EXPECT_EQ(cap.get(hca_cap::log_max_ra_req_dc), cap.get(hca_cap::log_max_ra_req_qp));
    EXPECT_FALSE(cap.get(hca_cap::xrc) || cap.get(hca_cap::roce) || cap.get(hca_cap::pg));
    EXPECT_FALSE(cap.get(hca_cap::tag_matching) || cap.get(hca_cap::cqe_compression) || cap.get(hca_cap::crypto));
    EXPECT_EQ(cap.get(hca_cap::vhca_id), machine.memory().function_table[1].vhca_id);
    EXPECT_EQ(cap.get(hca_cap::max_indirection), max_indirection);
    EXPECT_EQ(cap.get(hca_cap::log_max_klm_list_size), 16);
    EXPECT_TRUE(cap.get(hca_cap::fixed_buffer_size) && cap.get(hca_cap::imaicl));
    EXPECT_FALSE(cap.get(hca_cap::repeated_mkey) || cap.get(hca_cap::repeated_block_disabled));
    EXPECT_EQ(cap.get(hca_cap::umr_fence), prm::umr_fence_kind::small);
    EXPECT_EQ(cap.get(hca_cap::cqe_version), 1);
    EXPECT_EQ(cap.get(hca_cap::log_max_msg), 30) << "what UCX insists on";
    EXPECT_EQ(cap.get(hca_cap::log_max_qp), 15);
    EXPECT_EQ(cap.get(hca_cap::log_max_mkey), 17);
    EXPECT_EQ(cap.get(hca_cap::port_type), prm::port_type::infiniband);
}

TEST_F(command_port, the_most_there_is_is_what_is_in_force)
{
    for (const prm::cap_page page : {prm::cap_page::general, prm::cap_page::general_2, prm::cap_page::atomic,
                                     prm::cap_page::device_memory, prm::cap_page::odp}) {
        ASSERT_EQ(query(page, true), command_status::ok);
        const std::vector<std::byte> current(device.out_bytes().begin(), device.out_bytes().end());
        ASSERT_EQ(query(page, false), command_status::ok);
        EXPECT_TRUE(std::ranges::equal(current, device.out_bytes()));
    }
}

TEST_F(command_port, pages_of_what_is_not_modelled_are_empty_and_unknown_pages_refused)
{
    for (const prm::cap_page page : {prm::cap_page::odp, prm::cap_page::roce, prm::cap_page::qos,
                                     prm::cap_page::nic_flow, prm::cap_page::crypto}) {
        ASSERT_EQ(query(page), command_status::ok);
        EXPECT_TRUE(std::ranges::all_of(device.out_bytes(), [](std::byte one) { return one == std::byte{0}; }));
    }
    EXPECT_EQ(query(static_cast<prm::cap_page>(0x77)), command_status::bad_parameter);
}

TEST_F(command_port, short_answers_have_the_beginning_of_the_page)
{
    ASSERT_EQ(query(prm::cap_page::general, true, 16 + 2048), command_status::ok);
    EXPECT_EQ(page<hca_cap>().get(hca_cap::log_max_msg), 30);
    EXPECT_EQ(query(prm::cap_page::general, true, 16 + 255), command_status::bad_output_length);
}

TEST_F(command_port, atomics_are_of_four_and_eight_bytes_masked_too)
{
    ASSERT_EQ(query(prm::cap_page::atomic), command_status::ok);
    const auto cap = page<prm::atomic_caps>();
    EXPECT_EQ(std::to_underlying(cap.get(prm::atomic_caps::atomic_operations)), 0xf);
    EXPECT_EQ(cap.get(prm::atomic_caps::atomic_size_qp), 12);
    EXPECT_EQ(cap.get(prm::atomic_caps::fetch_add_pci_atomic), 0);
}

TEST_F(command_port, keys_may_cross_functions)
{
    ASSERT_EQ(query(prm::cap_page::general_2), command_status::ok);
    const auto cap = page<prm::hca_cap_2>();
    EXPECT_EQ(cap.get(prm::hca_cap_2::cross_vhca_object_to_object_supported),
              prm::vhca_alias::local_mkey_to_remote_mkey);
    EXPECT_EQ(cap.get(prm::hca_cap_2::allowed_object_for_other_vhca_access), prm::vhca_object::mkey);
}

TEST_F(command_port, device_memory_is_as_large_as_it_says)
{
    ASSERT_EQ(query(prm::cap_page::device_memory), command_status::ok);
    const auto cap = page<prm::device_mem_cap>();
    EXPECT_TRUE(cap.get(prm::device_mem_cap::memic));
    const std::uint64_t most = cap.get(prm::device_mem_cap::max_memic_size);
    fabric& fabric           = device.process().device();
    EXPECT_FALSE(fabric.alloc_memic(1, most + 1, 0).has_value());
    EXPECT_TRUE(fabric.alloc_memic(1, most, cap.get(prm::device_mem_cap::log_max_memic_addr_alignment)).has_value());
}

TEST_F(command_port, the_port_is_up_and_has_the_names_of_the_function)
{
    prm::storage<prm::query_hca_vport_context_in> input;
    (*input).put<command::query_hca_vport_context>(prm::query_hca_vport_context_in::opcode);
    ASSERT_EQ(device.send(input.bytes, 524), command_status::ok) << "as test programs declare it";
    ASSERT_EQ(device.send(input.bytes), command_status::ok);
    const auto context = device.out<prm::query_hca_vport_context_out>().at(prm::query_hca_vport_context_out::context);
    const function_record& self = machine.memory().function_table[1];
    EXPECT_EQ(context.get(prm::hca_vport_context::lid), self.lid);
    EXPECT_EQ(context.get(prm::hca_vport_context::port_guid), self.port_guid);
    EXPECT_EQ(context.get(prm::hca_vport_context::vport_state), prm::vport_state::active);
    (*input).put<1>(prm::query_hca_vport_context_in::port_num);
    EXPECT_EQ(device.send(input.bytes), command_status::ok);
    (*input).put<2>(prm::query_hca_vport_context_in::port_num);
    EXPECT_EQ(device.send(input.bytes), command_status::bad_parameter);
}

TEST_F(command_port, the_port_tells_that_no_service_level_is_routed_adaptively)
{
    ASSERT_EQ(query(prm::cap_page::general), command_status::ok);
    EXPECT_TRUE(page<prm::hca_cap>().get(prm::hca_cap::ooo_sl_mask));
    prm::storage<prm::query_hca_vport_context_in> input;
    (*input).put<command::query_hca_vport_context>(prm::query_hca_vport_context_in::opcode);
    ASSERT_EQ(device.send(input.bytes), command_status::ok);
    const auto context = device.out<prm::query_hca_vport_context_out>().at(prm::query_hca_vport_context_out::context);
    EXPECT_EQ(context.get(prm::hca_vport_context::ooo_sl_mask), 0);
}

TEST_F(command_port, the_port_has_one_gid)
{
    prm::storage<prm::query_hca_vport_gid_in> input;
    (*input).put<command::query_hca_vport_gid>(prm::query_hca_vport_gid_in::opcode);
    ASSERT_EQ(device.send(input.bytes), command_status::ok);
    const auto out = device.out<prm::query_hca_vport_gid_out>();
    EXPECT_EQ(out.get(prm::query_hca_vport_gid_out::gids_num), 1);
    EXPECT_EQ(out.at(prm::query_hca_vport_gid_out::gid0).get(prm::gid::prefix), default_gid_prefix);
    EXPECT_EQ(out.at(prm::query_hca_vport_gid_out::gid0).get(prm::gid::guid),
              machine.memory().function_table[1].port_guid);
    (*input).put<1>(prm::query_hca_vport_gid_in::gid_index);
    EXPECT_EQ(device.send(input.bytes), command_status::bad_index);
}

TEST_F(command_port, there_is_no_link_aggregation)
{
    EXPECT_EQ(device.plain(command::query_lag, 0), command_status::ok);
    EXPECT_TRUE(std::ranges::all_of(device.out_bytes(), [](std::byte one) { return one == std::byte{0}; }));
}

} // namespace
} // namespace ucxl::softhca::test

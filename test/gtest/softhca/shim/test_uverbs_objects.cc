// Objects by handle: made, used by others, destroyed in every order, and left behind.
#include <gtest/gtest.h>

#include "verbs_maker.h"

namespace ucxl::softhca::test
{
namespace
{

constexpr std::uint32_t local_write = IB_UVERBS_ACCESS_LOCAL_WRITE;

class uverbs_objects : public testing::Test
{
protected:
    // The live objects on the device.
    void expect_device_empty()
    {
        const arena& memory = machine.memory();
        EXPECT_EQ(memory.pds.live, 0u);
        EXPECT_EQ(memory.uars.live, 0u);
        EXPECT_EQ(memory.umems.live, 0u);
        EXPECT_EQ(memory.cqs.live, 0u);
        EXPECT_EQ(memory.srqs.live, 0u);
        EXPECT_EQ(memory.qps.live, 0u);
        EXPECT_EQ(memory.mkeys.live, 0u);
        EXPECT_EQ(memory.counts.memic_used, 0u);
        EXPECT_TRUE(program.host.uars.empty());
        EXPECT_TRUE(program.host.writers.empty());
    }

    test_machine machine;
    kernel_program program{machine};
    verbs_maker maker{program};
    ib_uverbs_destroy_cq_resp cq_told{};
    ib_uverbs_destroy_qp_resp qp_told{};
};

TEST_F(uverbs_objects, closing_the_file_ends_all_it_made)
{
    const std::span<std::byte> memory = program.room(8192);
    maker.make_mr(memory, local_write);
    EXPECT_EQ(maker.try_mw(1).error, 0);
    const auto cq  = maker.make_cq(15, program.completion_channel(maker.fd));
    const auto srq = maker.make_srq(7);
    EXPECT_EQ(maker.make_qp(IB_UVERBS_QPT_RC, cq, cq, &srq).error, 0);
    EXPECT_EQ(maker.make_qp(IB_UVERBS_QPT_UD, cq, cq).error, 0);
    const auto dm = maker.make_dm(4096);
    EXPECT_EQ(maker.make_dm_mr(dm, 64, 128).error, 0);
    EXPECT_GT(machine.memory().umems.live, 0u);

    program.device->closing(maker.fd);
    EXPECT_FALSE(program.device->owns(maker.fd));
    expect_device_empty();
    EXPECT_EQ(machine.memory().counts.keys_left, 3u);
}

TEST_F(uverbs_objects, keys_that_are_destroyed_are_not_left_to_the_device)
{
    const auto mr = maker.make_mr(program.room(8192), local_write);
    const auto mw = maker.try_mw(1);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MR, mr.handle), 0);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MW, mw.handle), 0);
    program.device->closing(maker.fd);
    EXPECT_EQ(machine.memory().counts.keys_left, 0u);
}

TEST_F(uverbs_objects, a_copied_descriptor_keeps_the_file_open)
{
    constexpr int copy = 500;
    program.device->duplicated(maker.fd, copy);
    EXPECT_TRUE(program.device->owns(copy));
    program.device->closing(maker.fd);
    EXPECT_EQ(machine.memory().pds.live, 1u);
    EXPECT_EQ(program.device->device_number(copy), uverbs_device_number(0));
    program.device->closing(copy);
    expect_device_empty();
}

TEST_F(uverbs_objects, the_kernel_part_itself_ends_with_everything_closed)
{
    const auto cq = maker.make_cq(1);
    EXPECT_EQ(maker.make_qp(IB_UVERBS_QPT_RC, cq, cq).error, 0);
    program.device.reset();
    expect_device_empty();
}

TEST_F(uverbs_objects, what_others_need_is_busy)
{
    const auto cq  = maker.make_cq(7);
    const auto srq = maker.make_srq(7);
    const auto qp  = maker.make_qp(IB_UVERBS_QPT_RC, cq, cq, &srq);
    ASSERT_EQ(qp.error, 0);
    EXPECT_EQ(maker.destroy_cq(cq, cq_told), EBUSY);
    EXPECT_EQ(maker.destroy_srq(srq), EBUSY);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_PD, maker.pd), EBUSY);
    EXPECT_EQ(maker.destroy(MLX5_IB_OBJECT_UAR, maker.uar_handle), EINVAL);
    EXPECT_EQ(maker.destroy_qp(qp, qp_told), 0);
    EXPECT_EQ(maker.destroy_srq(srq), 0);
    EXPECT_EQ(maker.destroy_cq(cq, cq_told), 0);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_PD, maker.pd), 0);
    EXPECT_EQ(maker.destroy(MLX5_IB_OBJECT_UAR, maker.uar_handle), 0);
    EXPECT_EQ(machine.memory().umems.live, 0u);
}

TEST_F(uverbs_objects, device_memory_is_busy_while_a_key_is_on_it)
{
    const auto dm = maker.make_dm(100);
    const auto mr = maker.make_dm_mr(dm, 36, 64);
    ASSERT_EQ(mr.error, 0);
    EXPECT_EQ(maker.make_dm_mr(dm, 37, 64).error, EINVAL);
    EXPECT_EQ(maker.make_dm_mr(dm, ~std::uint64_t{0}, 64).error, EINVAL);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_DM, dm.handle), EBUSY);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MR, mr.handle), 0);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_DM, dm.handle), 0);
}

TEST_F(uverbs_objects, windows_need_a_card_that_checks_nested_keys_by_their_local_rights)
{
    const auto window = maker.try_mw(2);
    ASSERT_EQ(window.error, 0);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MW, window.handle), 0);
    machine.memory().card.imaicl = false;
    EXPECT_EQ(maker.try_mw(1).error, EOPNOTSUPP);
    EXPECT_EQ(maker.try_mw(2).error, EOPNOTSUPP);
}

TEST_F(uverbs_objects, device_memory_has_an_end)
{
    EXPECT_EQ(maker.try_dm(0, 0).error, EINVAL);
    EXPECT_EQ(maker.try_dm(memic_bytes + 1, 0).error, EINVAL);
    EXPECT_EQ(maker.try_dm(64, 63).error, EINVAL);
    EXPECT_EQ(maker.try_dm(memic_bytes, 0).error, 0);
    EXPECT_EQ(maker.try_dm(64, 0).error, ENOMEM);
}

TEST_F(uverbs_objects, handles_that_are_not_there_or_of_another_kind)
{
    const auto cq = maker.make_cq(1);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_PD, 1000), ENOENT);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_PD, cq.handle), EINVAL);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MR, maker.pd), EINVAL);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_PD, 0xffffffff), ENOENT);
    EXPECT_EQ(maker.try_mr(address_of(program.room(64).data()), 64, 0, local_write, 77).error, ENOENT);

    uverbs_request wide(program, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
    wide.object(UVERBS_ATTR_DESTROY_PD_HANDLE, std::uint64_t{1} << 32 | maker.pd);
    EXPECT_EQ(wide.run(maker.fd), EINVAL);
}

TEST_F(uverbs_objects, handles_of_one_file_are_not_those_of_another)
{
    verbs_maker other(program);
    EXPECT_EQ(other.destroy(UVERBS_OBJECT_PD, other.pd), 0);
    const auto cq = maker.make_cq(1);
    EXPECT_EQ(maker.make_qp(IB_UVERBS_QPT_RC, cq, cq).error, 0);
    EXPECT_EQ(other.make_qp(IB_UVERBS_QPT_RC, cq, cq).error, ENOENT);
}

TEST_F(uverbs_objects, regions_are_refused_as_the_kernel_does)
{
    const std::span<std::byte> memory = program.process.allocate(8192);
    const std::uint64_t at            = address_of(memory.data());
    EXPECT_EQ(maker.try_mr(at, 8192, at, local_write, maker.pd).error, 0);
    EXPECT_EQ(maker.try_mr(at, 8193, at, local_write, maker.pd).error, EFAULT);
    EXPECT_EQ(maker.try_mr(at + 8192, 4096, at, local_write, maker.pd).error, EFAULT);
    EXPECT_EQ(maker.try_mr(at, 8192, at + 1, local_write, maker.pd).error, EINVAL);
    EXPECT_EQ(maker.try_mr(at + 8, 64, 8, local_write, maker.pd).error, 0);
    EXPECT_EQ(maker.try_mr(at, 0, at, local_write, maker.pd).error, EINVAL);
    EXPECT_EQ(maker.try_mr(at, ~std::uint64_t{0}, at, local_write, maker.pd).error, EINVAL);
    EXPECT_EQ(maker.try_mr(at, 64, at, IB_UVERBS_ACCESS_REMOTE_WRITE, maker.pd).error, EINVAL);
    EXPECT_EQ(maker.try_mr(at, 64, at, IB_UVERBS_ACCESS_REMOTE_ATOMIC, maker.pd).error, EINVAL);
    EXPECT_EQ(maker.try_mr(at, 64, at, IB_UVERBS_ACCESS_REMOTE_READ, maker.pd).error, 0);
    EXPECT_EQ(maker.try_mr(at, 64, at, 1U << 12, maker.pd).error, EINVAL);
    EXPECT_EQ(maker.try_mr(at, 64, at, IB_UVERBS_ACCESS_ON_DEMAND, maker.pd).error, EOPNOTSUPP);
    EXPECT_EQ(maker.try_mr(at, 64, at, IB_UVERBS_ACCESS_RELAXED_ORDERING, maker.pd).error, 0);
    // Unknown flags of the optional range are allowed.
    EXPECT_EQ(maker.try_mr(at, 64, at, 1U << 29, maker.pd).error, 0);
}

TEST_F(uverbs_objects, a_key_has_the_rights_that_were_asked_for)
{
    const std::uint32_t asked    = local_write | IB_UVERBS_ACCESS_REMOTE_READ;
    const auto mr                = maker.make_mr(program.room(100), asked);
    const mkey_record* const key = machine.memory().find_key(mr.number);
    ASSERT_NE(key, nullptr);
    EXPECT_TRUE(key->local_read);
    EXPECT_TRUE(key->local_write);
    EXPECT_TRUE(key->remote_read);
    EXPECT_FALSE(key->remote_write);
    EXPECT_FALSE(key->remote_atomic);
    EXPECT_EQ(key->len, 100u);
}

TEST_F(uverbs_objects, reregistering_changes_the_region_and_keeps_its_key)
{
    const std::span<std::byte> memory = program.room(4096);
    const auto mr                     = maker.make_mr(memory, local_write);
    ib_uverbs_rereg_mr request{};
    request.mr_handle    = mr.handle;
    request.flags        = 4; // access
    request.access_flags = local_write | IB_UVERBS_ACCESS_REMOTE_READ;
    ib_uverbs_rereg_mr_resp response{};
    // By pointer: clang does not capture structures with a flexible array.
    auto* const asked    = &request;
    auto* const answered = &response;
    const auto run = [&] { return write_command(program, maker.fd, IB_USER_VERBS_CMD_REREG_MR, *asked, *answered); };
    ASSERT_EQ(run(), 0);
    EXPECT_EQ(machine.memory().mkeys.live, 1u);
    EXPECT_EQ(response.lkey, mr.number);
    EXPECT_EQ(response.rkey, mr.number);
    const mkey_record* const key = machine.memory().find_key(mr.number);
    ASSERT_NE(key, nullptr);
    EXPECT_TRUE(key->remote_read);
    EXPECT_EQ(machine.memory().umems.live, 1u);

    const std::span<std::byte> elsewhere = program.room(8192);
    request.flags                        = 1 | 2; // translation and domain
    request.start = request.hca_va = address_of(elsewhere.data());
    request.length                 = 8192;
    request.pd_handle              = program.alloc_pd(maker.fd);
    ASSERT_EQ(run(), 0);
    EXPECT_EQ(key->start_addr, address_of(elsewhere.data()));
    EXPECT_EQ(key->host_address, address_of(elsewhere.data()));
    EXPECT_EQ(key->len, 8192u);
    EXPECT_TRUE(key->remote_read);
    EXPECT_EQ(machine.memory().umems.live, 1u);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_PD, request.pd_handle), EBUSY);

    request.flags = 1; // to unmapped memory
    request.start = request.hca_va = 0x1000;
    request.length                 = 4096;
    EXPECT_EQ(run(), EFAULT);
    EXPECT_EQ(machine.memory().mkeys.live, 1u);
    request.flags     = 2; // domain
    request.pd_handle = 1234;
    EXPECT_EQ(run(), ENOENT);
    request.flags = 0;
    EXPECT_EQ(run(), EINVAL);
    request.flags = 8;
    EXPECT_EQ(run(), EOPNOTSUPP);
    EXPECT_EQ(maker.destroy(UVERBS_OBJECT_MR, mr.handle), 0);
    EXPECT_EQ(machine.memory().umems.live, 0u);
}

TEST_F(uverbs_objects, an_answer_that_cannot_be_written_takes_the_object_back)
{
    uverbs_request call(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    call.constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_ALLOC_PD)
        .in(UVERBS_ATTR_CORE_IN, ib_uverbs_alloc_pd{})
        .out<ib_uverbs_alloc_pd_resp>(UVERBS_ATTR_CORE_OUT);
    call.attributes.back().data = 0x1000;
    EXPECT_EQ(call.run(maker.fd), EFAULT);
    EXPECT_EQ(machine.memory().pds.live, 1u);

    uverbs_request channel(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    channel.constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
        .in(UVERBS_ATTR_CORE_IN, ib_uverbs_create_comp_channel{})
        .out<ib_uverbs_create_comp_channel_resp>(UVERBS_ATTR_CORE_OUT);
    channel.attributes.back().data = 0x1000;
    const std::size_t open_before  = program.host.open_fds.size();
    EXPECT_EQ(channel.run(maker.fd), EFAULT);
    EXPECT_EQ(program.host.open_fds.size(), open_before);
    EXPECT_EQ(program.host.writers.size(), 1u);
}

TEST_F(uverbs_objects, no_descriptors_left)
{
    program.host.fd_limit = 3;
    EXPECT_EQ(program.open(), -1);
    EXPECT_EQ(errno, EMFILE);
    ib_uverbs_create_comp_channel_resp response{};
    EXPECT_EQ(write_command(program, maker.fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, ib_uverbs_create_comp_channel{},
                            response),
              EMFILE);
}

TEST_F(uverbs_objects, queues_of_wrong_sizes_are_refused)
{
    mlx5_ib_create_cq driver{};
    driver.buf_addr       = address_of(program.room(4096).data());
    driver.db_addr        = address_of(program.room(8).data());
    driver.cqe_size       = 64;
    driver.flags          = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
    driver.uar_page_index = static_cast<std::uint16_t>(maker.uar);
    const auto create     = [&](std::uint32_t entries, std::uint32_t vector, std::uint32_t flags) {
        uverbs_request call(program, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
        call.object(UVERBS_ATTR_CREATE_CQ_HANDLE, 0)
            .in(UVERBS_ATTR_CREATE_CQ_CQE, entries)
            .in(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, std::uint64_t{1})
            .in(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, vector)
            .in(UVERBS_ATTR_CREATE_CQ_FLAGS, flags)
            .out<std::uint32_t>(UVERBS_ATTR_CREATE_CQ_RESP_CQE)
            .in(UVERBS_ATTR_UHW_IN, driver);
        return call.run(maker.fd);
    };
    EXPECT_EQ(create(63, 0, 0), 0);
    EXPECT_EQ(create(63, 1000, 0), EINVAL);
    EXPECT_EQ(create(63, 0, 1U << 7), EINVAL);
    EXPECT_EQ(create(0xffffffff, 0, 0), EINVAL);
    EXPECT_EQ(create(1U << 30, 0, 0), EINVAL);
    EXPECT_EQ(create(1U << 21, 0, 0), EFAULT);
    driver.cqe_size = 65;
    EXPECT_EQ(create(63, 0, 0), EINVAL);
    driver.cqe_size  = 64;
    driver.reserved0 = 1;
    EXPECT_EQ(create(63, 0, 0), EINVAL);
    driver.reserved0   = 0;
    driver.cqe_comp_en = 1;
    EXPECT_EQ(create(63, 0, 0), EOPNOTSUPP);
    driver.cqe_comp_en    = 0;
    driver.uar_page_index = 4000;
    EXPECT_EQ(create(63, 0, 0), EINVAL);
    driver.flags = 0;
    EXPECT_EQ(create(63, 0, 0), EINVAL);
    EXPECT_EQ(machine.memory().cqs.live, 1u);
    EXPECT_EQ(machine.memory().umems.live, 2u);
}

TEST_F(uverbs_objects, a_shared_queue_without_room_is_made)
{
    EXPECT_EQ(maker.destroy_srq(maker.make_srq(0)), 0);
}

TEST_F(uverbs_objects, kinds_of_queue_pairs_that_do_not_exist)
{
    const auto cq = maker.make_cq(7);
    EXPECT_EQ(maker.make_qp(IB_UVERBS_QPT_RAW_PACKET, cq, cq).error, EOPNOTSUPP);
    EXPECT_EQ(maker.make_qp(IB_UVERBS_QPT_XRC_INI, cq, cq).error, EOPNOTSUPP);
    EXPECT_EQ(maker.make_qp(0, cq, cq).error, EINVAL);
    EXPECT_EQ(maker.make_qp(77, cq, cq).error, EINVAL);
    EXPECT_EQ(machine.memory().qps.live, 0u);
}

} // namespace
} // namespace ucxl::softhca::test

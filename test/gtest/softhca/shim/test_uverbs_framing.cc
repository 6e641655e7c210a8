// The outermost layer: wrong headers and attributes, before any method sees them.
#include <gtest/gtest.h>

#include "kernel_program.h"
#include "support/random.h"

namespace ucxl::softhca::test
{
namespace
{

constexpr std::uint64_t nowhere = 0xdead0000;

class uverbs_framing : public testing::Test
{
protected:
    uverbs_request query_port()
    {
        uverbs_request request(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
        request.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1)
            .out<ib_uverbs_query_port_resp_ex>(UVERBS_ATTR_QUERY_PORT_RESP);
        return request;
    }

    test_machine machine;
    kernel_program program{machine};
    int fd = program.open_context();
};

TEST_F(uverbs_framing, a_good_request_is_answered)
{
    uverbs_request request = query_port();
    ASSERT_EQ(request.run(fd), 0);
    const auto port = request.answer<ib_uverbs_query_port_resp_ex>(UVERBS_ATTR_QUERY_PORT_RESP);
    EXPECT_EQ(port.legacy_resp.state, 4);
    EXPECT_EQ(port.legacy_resp.lid, machine.memory().function_table[0].lid);
    EXPECT_NE(request.attribute(UVERBS_ATTR_QUERY_PORT_RESP).flags & UVERBS_ATTR_F_VALID_OUTPUT, 0);
}

TEST_F(uverbs_framing, other_requests_than_the_one_are_no_ioctl_of_this)
{
    EXPECT_EQ(program.device->ioctl(fd, 0x1234, nullptr), -1);
    EXPECT_EQ(errno, ENOTTY);
    EXPECT_EQ(program.device->ioctl(fd + 100, RDMA_VERBS_IOCTL, nullptr), -1);
    EXPECT_EQ(errno, ENOTTY);
    const int channel = program.async_channel(fd);
    EXPECT_EQ(program.device->ioctl(channel, RDMA_VERBS_IOCTL, nullptr), -1);
    EXPECT_EQ(errno, ENOTTY);
}

TEST_F(uverbs_framing, memory_that_is_not_there_is_EFAULT)
{
    uverbs_request request = query_port();
    EXPECT_EQ(request.run_at(fd, nowhere), EFAULT);
    EXPECT_EQ(request.run_at(fd, 0), EFAULT);
    EXPECT_EQ(request.run_at(fd, ~std::uint64_t{0} - 7), EFAULT);

    // The header is mapped, its attributes are not.
    const std::span<std::byte> page = program.process.allocate(4096);
    ib_uverbs_ioctl_hdr header      = request.header;
    header.num_attrs                = 2;
    header.length                   = sizeof(header) + 2 * sizeof(ib_uverbs_attr);
    std::byte* const last           = page.data() + page.size() - sizeof(header);
    std::memcpy(last, &header, sizeof(header));
    EXPECT_EQ(request.run_at(fd, address_of(last)), EFAULT);

    uverbs_request answer     = query_port();
    answer.attributes[1].data = nowhere;
    EXPECT_EQ(answer.run(fd), EFAULT);
}

TEST_F(uverbs_framing, headers_have_to_agree_with_themselves)
{
    const auto with = [&](auto change) {
        uverbs_request request     = query_port();
        ib_uverbs_ioctl_hdr header = request.header;
        header.num_attrs           = 2;
        header.length              = sizeof(header) + 2 * sizeof(ib_uverbs_attr);
        change(header);
        std::byte* const at = program.room(8192).data();
        std::memcpy(at, &header, sizeof(header));
        std::memcpy(at + sizeof(header), request.attributes.data(), 2 * sizeof(ib_uverbs_attr));
        return request.run_at(fd, address_of(at));
    };
    EXPECT_EQ(with([](auto&) {}), 0);
    EXPECT_EQ(with([](auto& header) { header.length--; }), EINVAL);
    EXPECT_EQ(with([](auto& header) { header.num_attrs = 3; }), EINVAL);
    EXPECT_EQ(with([](auto& header) { header.num_attrs = 0xffff; }), EINVAL);
    EXPECT_EQ(with([](auto& header) {
                  header.num_attrs = 300;
                  header.length    = sizeof(header) + 300 * sizeof(ib_uverbs_attr);
              }),
              EINVAL);
    EXPECT_EQ(with([](auto& header) { header.reserved1 = 1; }), EPROTONOSUPPORT);
    EXPECT_EQ(with([](auto& header) { header.reserved2 = 1; }), EPROTONOSUPPORT);
    EXPECT_EQ(with([](auto& header) { header.driver_id = 2; }), EINVAL);
    EXPECT_EQ(with([](auto& header) { header.method_id = 99; }), EPROTONOSUPPORT);
    EXPECT_EQ(with([](auto& header) { header.object_id = 999; }), EPROTONOSUPPORT);
    EXPECT_EQ(with([](auto& header) { header.object_id = UVERBS_OBJECT_COUNTERS; }), EOPNOTSUPP);
    EXPECT_EQ(with([](auto& header) { header.object_id = UVERBS_OBJECT_FLOW; }), EOPNOTSUPP);
}

TEST_F(uverbs_framing, attributes_are_checked_against_the_method)
{
    uverbs_request twice = query_port();
    twice.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
    EXPECT_EQ(twice.run(fd), EINVAL);

    uverbs_request missing(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    missing.constant(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1);
    EXPECT_EQ(missing.run(fd), EINVAL);

    uverbs_request unknown = query_port();
    unknown.constant(77, 1);
    EXPECT_EQ(unknown.run(fd), EPROTONOSUPPORT);
    unknown.attributes.back().flags = 0;
    EXPECT_EQ(unknown.run(fd), 0);

    uverbs_request narrow    = query_port();
    narrow.attributes[0].len = 4;
    EXPECT_EQ(narrow.run(fd), EINVAL);
    narrow.attributes[0].len = 16;
    EXPECT_EQ(narrow.run(fd), EINVAL);

    uverbs_request reserved                   = query_port();
    reserved.attributes[0].attr_data.reserved = 1;
    EXPECT_EQ(reserved.run(fd), EINVAL);

    uverbs_request no_room    = query_port();
    no_room.attributes[1].len = 8;
    EXPECT_EQ(no_room.run(fd), EINVAL);
}

TEST_F(uverbs_framing, nothing_works_before_there_is_a_context)
{
    const int bare = program.open();
    EXPECT_EQ(query_port().run(bare), EINVAL);

    // The library's first question: whether commands may be sent like this. A short one is ENOSPC, not "not supported".
    uverbs_request probe(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    probe.constant(UVERBS_ATTR_WRITE_CMD, IB_USER_VERBS_CMD_QUERY_DEVICE);
    EXPECT_EQ(probe.run(bare), ENOSPC);

    ib_uverbs_query_device_resp response{};
    EXPECT_EQ(write_command(program, bare, IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{}, response), EINVAL);
    EXPECT_EQ(write_command(program, fd, IB_USER_VERBS_CMD_QUERY_DEVICE, ib_uverbs_query_device{}, response), 0);
    EXPECT_EQ(response.vendor_part_id, 4129u);
}

TEST_F(uverbs_framing, a_context_is_given_once)
{
    uverbs_request again(program, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    mlx5_ib_alloc_ucontext_req_v2 request{};
    request.total_num_bfregs = 1;
    again.in(UVERBS_ATTR_UHW_IN, request).out<mlx5_ib_alloc_ucontext_resp>(UVERBS_ATTR_UHW_OUT);
    EXPECT_EQ(again.run(fd), EINVAL);
}

TEST_F(uverbs_framing, commands_of_the_older_interface_that_do_not_exist)
{
    ib_uverbs_query_device_resp response{};
    const auto run = [&](std::uint64_t number) {
        return write_command(program, fd, number, ib_uverbs_query_device{}, response);
    };
    EXPECT_EQ(run(IB_USER_VERBS_CMD_OPEN_XRCD), EOPNOTSUPP);
    EXPECT_EQ(run(IB_USER_VERBS_CMD_POLL_CQ), EOPNOTSUPP);
    EXPECT_EQ(run(200), EINVAL);
    EXPECT_EQ(run(0x100), EINVAL);
    EXPECT_EQ(run(std::uint64_t{1} << 40), EINVAL);
    EXPECT_EQ(run(IB_USER_VERBS_CMD_FLAG_EXTENDED | 200), EOPNOTSUPP);
    EXPECT_EQ(run(IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_CREATE_FLOW), EOPNOTSUPP);
}

TEST_F(uverbs_framing, bytes_behind_a_request_have_to_be_zero)
{
    struct longer {
        ib_uverbs_ex_query_device known;
        std::uint64_t unknown;
    } request{};
    ib_uverbs_ex_query_device_resp response{};
    const auto run = [&] {
        return write_command(program, fd, IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, request,
                             response);
    };
    EXPECT_EQ(run(), 0);
    EXPECT_EQ(response.response_length, sizeof(response));
    request.unknown = 1;
    EXPECT_EQ(run(), EOPNOTSUPP);
}

// Valid requests with a few bits changed: any errno, no crash, and the context keeps working.
TEST_F(uverbs_framing, bits_that_change_on_the_way_do_no_harm)
{
    ucxl::test::random numbers(ucxl::test::run_seed());
    const auto random                        = [&] { return static_cast<std::uint32_t>(numbers.next()); };
    static constexpr std::uint16_t objects[] = {
        UVERBS_OBJECT_DEVICE, UVERBS_OBJECT_PD,        UVERBS_OBJECT_CQ,         UVERBS_OBJECT_QP,
        UVERBS_OBJECT_SRQ,    UVERBS_OBJECT_MR,        UVERBS_OBJECT_MW,         UVERBS_OBJECT_DM,
        MLX5_IB_OBJECT_DEVX,  MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_OBJECT_UAR,
    };
    const std::span<std::byte> at = program.process.allocate(4096);
    for (int i = 0; i < 200000; i++) {
        ib_uverbs_ioctl_hdr header{};
        header.driver_id = 1;
        header.object_id = objects[random() % std::size(objects)];
        header.method_id = static_cast<std::uint16_t>(random() % 7 + (random() % 2 != 0 ? 0x1000 : 0));
        header.num_attrs = static_cast<std::uint16_t>(random() % 9);
        header.length    = static_cast<std::uint16_t>(sizeof(header) + header.num_attrs * sizeof(ib_uverbs_attr));
        std::memcpy(at.data(), &header, sizeof(header));
        for (unsigned j = 0; j < header.num_attrs; j++) {
            ib_uverbs_attr attribute{};
            attribute.attr_id = static_cast<std::uint16_t>(random() % 8 + (random() % 2 != 0 ? 0x1000 : 0));
            attribute.len     = static_cast<std::uint16_t>(random() % 4 == 0 ? random() : (random() % 9) * 4);
            attribute.flags   = static_cast<std::uint16_t>(random() % 2);
            attribute.data    = random() % 2 != 0 ? random() % 64 : address_of(at.data()) + random() % 5000;
            std::memcpy(at.data() + sizeof(header) + j * sizeof(attribute), &attribute, sizeof(attribute));
        }
        uverbs_request(program, 0, 0).run_at(fd, address_of(at.data()));
    }
    EXPECT_EQ(query_port().run(fd), 0);
}

} // namespace
} // namespace ucxl::softhca::test

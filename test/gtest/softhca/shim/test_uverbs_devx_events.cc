// DEVX: answers and events that come by files, and objects that only DEVX makes.
#include <gtest/gtest.h>

#include "prm/eq.h"
#include "prm/object.h"
#include "prm/qp.h"
#include "prm/resource.h"
#include "softhca/shim/host/event_record.h"
#include "verbs_maker.h"

namespace ucxl::softhca::test
{
namespace
{

class uverbs_devx_events : public testing::Test
{
protected:
    int answer_channel()
    {
        uverbs_request call(program, MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC);
        call.object(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, 0);
        EXPECT_EQ(call.run(maker.fd), 0);
        return static_cast<int>(call.handle(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE));
    }

    int query_later(int channel, const verbs_maker::made& about, std::uint32_t qpn, std::uint64_t length,
                    prm::command opcode = prm::command::query_qp)
    {
        prm::storage<prm::query_qp_in> input;
        (void)(*input).set(prm::query_qp_in::opcode, opcode);
        EXPECT_TRUE((*input).set(prm::query_qp_in::qpn, qpn));
        uverbs_request call(program, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY);
        call.object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, about.handle)
            .in_bytes(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, input.bytes.data(), input.bytes.size())
            .constant(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, length)
            .object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, static_cast<std::uint64_t>(channel))
            .in(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, std::uint64_t{4711});
        return call.run(maker.fd);
    }

    template <typename In, typename Out>
    int create(const prm::storage<In>& input, std::uint32_t& handle, prm::storage<Out>& output)
    {
        uverbs_request call(program, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
        call.object(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0)
            .in_bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, input.bytes.data(), input.bytes.size())
            .out_bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, output.bytes.size());
        const int error = call.run(maker.fd);
        handle          = static_cast<std::uint32_t>(call.handle(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE));
        std::ranges::copy(call.bytes(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT), output.bytes.begin());
        return error;
    }

    test_machine machine;
    kernel_program program{machine};
    verbs_maker maker{program};
    verbs_maker::made cq = maker.make_cq(15);
    verbs_maker::made qp = maker.make_qp(IB_UVERBS_QPT_RC, cq, cq);
};

TEST_F(uverbs_devx_events, a_query_may_be_answered_by_a_file)
{
    const int channel = answer_channel();
    ASSERT_EQ(query_later(channel, qp, qp.number, prm::query_qp_out::size_bytes), 0);
    ASSERT_EQ(program.host.answers.size(), 1u);
    const auto& answers = program.host.answers.begin()->second;
    ASSERT_EQ(answers.size(), 1u);
    ASSERT_EQ(answers[0].size(), 8 + prm::query_qp_out::size_bytes);
    std::uint64_t wr_id = 0;
    std::memcpy(&wr_id, answers[0].data(), sizeof(wr_id));
    EXPECT_EQ(wr_id, 4711u);
    const auto output = *prm::const_view<prm::query_qp_out>::over(std::span(answers[0]).subspan(8));
    EXPECT_EQ(output.get(prm::query_qp_out::status), prm::command_status::ok);
    EXPECT_EQ(output.at(prm::query_qp_out::qpc).get(prm::qpc::st), prm::qp_service::rc);
}

TEST_F(uverbs_devx_events, a_query_that_the_device_refuses_has_an_answer_too)
{
    ASSERT_EQ(query_later(answer_channel(), qp, qp.number, 16), 0);
    const auto& answer = program.host.answers.begin()->second[0];
    const auto output  = *prm::const_view<prm::any_output>::over(std::span(answer).subspan(8));
    EXPECT_EQ(output.get(prm::any_output::status), prm::command_status::bad_output_length);
}

TEST_F(uverbs_devx_events, only_queries_of_the_object_are_taken)
{
    const int channel = answer_channel();
    EXPECT_EQ(query_later(channel, qp, qp.number + 1, 16), EINVAL);
    EXPECT_EQ(query_later(channel, qp, qp.number, 16, prm::command::destroy_qp), EINVAL);
    EXPECT_EQ(query_later(channel, qp, qp.number, 0x10000), EINVAL);
    EXPECT_EQ(query_later(maker.async_fd, qp, qp.number, 16), EBADF);
    program.host.answers_fit = false;
    EXPECT_EQ(query_later(channel, qp, qp.number, 16), EAGAIN);
}

TEST_F(uverbs_devx_events, flow_counters_count_nothing)
{
    prm::storage<prm::alloc_flow_counter_in> input;
    (*input).put<prm::command::alloc_flow_counter>(prm::alloc_flow_counter_in::opcode);
    prm::storage<prm::alloc_flow_counter_out> output;
    std::uint32_t handle = 0;
    ASSERT_EQ(create(input, handle, output), 0);
    EXPECT_EQ(machine.memory().flow_counters.live, 1u);
    const std::uint32_t number = (*output).get(prm::alloc_flow_counter_out::flow_counter_id);
    prm::storage<prm::query_flow_counter_in> query;
    (*query).put<prm::command::query_flow_counter>(prm::query_flow_counter_in::opcode);
    const auto ask = [&](std::uint32_t asked) {
        EXPECT_TRUE((*query).set(prm::query_flow_counter_in::flow_counter_id, asked));
        uverbs_request call(program, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY);
        call.object(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, handle)
            .in_bytes(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, query.bytes.data(), query.bytes.size())
            .out_bytes(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, prm::query_flow_counter_out::size_bytes);
        const int error   = call.run(maker.fd);
        const auto answer = call.bytes(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT);
        EXPECT_TRUE(std::ranges::all_of(answer, [](std::byte one) { return one == std::byte{0}; }));
        return error;
    };
    EXPECT_EQ(ask(number), 0);
    EXPECT_EQ(ask(number + 1), EINVAL) << "another one";
    (*input).put<1>(prm::alloc_flow_counter_in::flow_counter_bulk);
    std::uint32_t other = 0;
    EXPECT_EQ(create(input, other, output), EREMOTEIO) << "not in bulk";
    uverbs_request end(program, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY);
    end.object(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, handle);
    EXPECT_EQ(end.run(maker.fd), 0);
    EXPECT_EQ(machine.memory().flow_counters.live, 0u);
}

TEST(event_records, devx_channels_get_the_reason_of_a_cq_error_and_eventfds_a_count)
{
    std::uint32_t kind = static_cast<std::uint32_t>(event_format::devx_data);
    ASSERT_TRUE(subscribe(kind, 4));
    const auto error    = event_code(prm::event_type::cq_error, prm::cq_error_reason::overrun);
    const auto whole    = format_event({.channel = 3, .kind = kind, .value = 7, .object = 0x99}, error);
    const auto entry    = *prm::const_view<prm::eqe>::over(std::span(whole.bytes).subspan(8));
    const auto cq_error = *prm::const_view<prm::event_cq_error>::over(entry.at(prm::eqe::event_data));
    EXPECT_EQ(whole.length, 72u);
    EXPECT_EQ(entry.get(prm::eqe::event_type), prm::event_type::cq_error);
    EXPECT_EQ(entry.get(prm::eqe::event_sub_type), 0);
    EXPECT_EQ(cq_error.get(prm::event_cq_error::cqn), 0x99u);
    EXPECT_EQ(cq_error.get(prm::event_cq_error::syndrome), 1);

    kind = static_cast<std::uint32_t>(event_format::devx_count);
    EXPECT_EQ(format_event({.channel = 3, .kind = kind, .value = 7}, error).length, 0u) << "not subscribed";
    ASSERT_TRUE(subscribe(kind, 4));
    const auto count  = format_event({.channel = 3, .kind = kind, .value = 7}, error);
    std::uint64_t one = 0;
    std::memcpy(&one, count.bytes.data(), sizeof(one));
    EXPECT_EQ(count.length, 8u);
    EXPECT_EQ(one, 1u);
}

} // namespace
} // namespace ucxl::softhca::test

// Claims of docs/needs-hardware.md about dynamic connections. contrib/hw-check judges the claims by these tests.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <poll.h>

#include "key_test.h"
#include "prm/eq.h"
#include "prm/hca_cap_pages.h"
#include "prm/qp.h"
#include "support/dc_queues.h"
#include "support/verbs.h"

namespace ucxl::test
{
namespace
{

constexpr std::uint32_t piece_bytes = 64;

// Commands of mlx5dv, which change or ask for an object of verbs.
template <typename Output, typename Input, typename Call>
int run(const Call& call, ibv_qp* qp, prm::storage<Input>& input, prm::storage<Output>& output)
{
    return call(qp, input.bytes.data(), input.bytes.size(), output.bytes.data(), output.bytes.size());
}

bool has_dynamic_connections(ibv_context* context)
{
    prm::storage<prm::query_hca_cap_in> input;
    prm::storage<prm::query_hca_cap_out> output;
    (*input).put<prm::command::query_hca_cap>(prm::query_hca_cap_in::opcode);
    (void)(*input).set(prm::query_hca_cap_in::op_mod,
                       static_cast<std::uint16_t>(std::to_underlying(prm::cap_page::general) << 1 | prm::cap_current));
    worked(mlx5dv_devx_general_cmd(context, input.bytes.data(), input.bytes.size(), output.bytes.data(),
                                   output.bytes.size()),
           "QUERY_HCA_CAP");
    return (*output).at(prm::query_hca_cap_out::general).get(prm::hca_cap::dct) != 0;
}

class dynamic_claims : public key_test
{
protected:
    void SetUp() override
    {
        key_test::SetUp();
        mlx5dv_context described{};
        described.comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS | MLX5DV_CONTEXT_MASK_DCI_STREAMS;
        worked(mlx5dv_query_device(pair.context(), &described), "mlx5dv_query_device");
        _streams = described.dci_streams_caps;
        _cq      = made(ibv_create_cq(pair.context(), 64, nullptr, nullptr, 0), "ibv_create_cq");
        if (!has_dynamic_connections(pair.context())) {
            GTEST_SKIP() << "the device has no dynamic connections";
        }
        _target.emplace(pair.pd(), _cq);
    }

    void TearDown() override
    {
        _target.reset();
        if (_cq != nullptr) {
            ibv_destroy_cq(_cq);
        }
        key_test::TearDown();
    }

    dc_route to_target() const { return {.target = _target->number()}; }

    ibv_wc_status write(dc_initiator& initiator, const dc_route& route)
    {
        return initiator.write(route, _from->piece(0, piece_bytes), _to->address(), _to->mr->rkey);
    }

    // To memory beyond the key.
    ibv_wc_status write_beyond(dc_initiator& initiator, const dc_route& route)
    {
        return initiator.write(route, _from->piece(0, piece_bytes), _to->address() + _to->bytes.size(), _to->mr->rkey);
    }

    // Requests with a wrong access key that the target has seen.
    std::uint32_t violations() const
    {
        prm::storage<prm::plain_dct_in> input;
        prm::storage<prm::query_dct_out> output;
        (*input).put<prm::command::query_dct>(prm::plain_dct_in::opcode);
        (void)(*input).set(prm::plain_dct_in::dctn, _target->number());
        worked(run(mlx5dv_devx_qp_query, _target->qp(), input, output), "QUERY_DCT");
        return (*output).at(prm::query_dct_out::dct_context).get(prm::dctc::dc_access_key_violation_count);
    }

    std::unique_ptr<buffer> _from = patterned(4096);
    std::unique_ptr<buffer> _to   = zeroed(4096);
    mlx5dv_dci_streams_caps _streams{};
    ibv_cq* _cq = nullptr;
    std::optional<dc_target> _target;
};

TEST_F(dynamic_claims, a_wrong_access_key_gets_no_answer_and_the_target_counts_each_try)
{
    constexpr std::uint32_t tries = 3; // one, and two retries
    dc_initiator initiator(pair.pd(), _cq);
    ASSERT_EQ(write(initiator, to_target()), IBV_WC_SUCCESS);
    const std::uint32_t before = violations();
    dc_route wrong             = to_target();
    wrong.access_key ^= 1;
    EXPECT_EQ(write(initiator, wrong), IBV_WC_RETRY_EXC_ERR);
    RecordProperty("violations", std::to_string(violations() - before));
    EXPECT_EQ(violations() - before, tries);
    initiator.reconnect();
    EXPECT_EQ(write(initiator, to_target()), IBV_WC_SUCCESS);
}

// A target made by the command itself, because events of DEVX are about such objects only.
class devx_target
{
public:
    devx_target(ibv_pd* pd, ibv_cq* cq, bool takes_writes) : _srq(create_receives(pd))
    {
        mlx5dv_pd domain{};
        mlx5dv_cq completions{};
        mlx5dv_srq receives{};
        receives.comp_mask = MLX5DV_SRQ_MASK_SRQN;
        mlx5dv_obj asked{};
        asked.pd  = {pd, &domain};
        asked.cq  = {cq, &completions};
        asked.srq = {_srq, &receives};
        worked(mlx5dv_init_obj(&asked, MLX5DV_OBJ_PD | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ), "mlx5dv_init_obj");
        ibv_port_attr port{};
        worked(ibv_query_port(pd->context, 1, &port), "ibv_query_port");
        prm::storage<prm::create_dct_in> input;
        prm::storage<prm::create_dct_out> output;
        (*input).put<prm::command::create_dct>(prm::create_dct_in::opcode);
        const auto context = (*input).at(prm::create_dct_in::dct_context);
        (void)context.set(prm::dctc::pd, domain.pdn);
        (void)context.set(prm::dctc::cqn, completions.cqn);
        (void)context.set(prm::dctc::srqn_xrqn, receives.srqn);
        context.put(prm::dctc::dc_access_key, dc_access_key);
        context.put(prm::dctc::rwe, takes_writes);
        context.put<1>(prm::dctc::port);
        context.put<1>(prm::dctc::hop_limit);
        context.put<1>(prm::dctc::min_rnr_nak);
        (void)context.set(prm::dctc::mtu, static_cast<prm::path_mtu>(port.active_mtu));
        _dct    = made(mlx5dv_devx_obj_create(pd->context, input.bytes.data(), input.bytes.size(), output.bytes.data(),
                                              output.bytes.size()),
                       "CREATE_DCT");
        _number = (*output).get(prm::create_dct_out::dctn);
        _events = made(mlx5dv_devx_create_event_channel(pd->context, mlx5dv_devx_create_event_channel_flags{}),
                       "mlx5dv_devx_create_event_channel");
        std::array wanted{static_cast<std::uint16_t>(prm::event_type::wq_access_error),
                          static_cast<std::uint16_t>(prm::event_type::wq_invalid_request)};
        worked(mlx5dv_devx_subscribe_devx_event(_events, _dct, sizeof(wanted), wanted.data(), _number),
               "mlx5dv_devx_subscribe_devx_event");
    }
    ~devx_target()
    {
        mlx5dv_devx_destroy_event_channel(_events);
        mlx5dv_devx_obj_destroy(_dct);
        ibv_destroy_srq(_srq);
    }
    devx_target(const devx_target&)            = delete;
    devx_target& operator=(const devx_target&) = delete;

    std::uint32_t number() const { return _number; }
    ibv_srq* receives() const { return _srq; }

    // The next event within two seconds.
    std::optional<prm::event_type> event()
    {
        pollfd readable{.fd = _events->fd, .events = POLLIN, .revents = 0};
        if (poll(&readable, 1, 2000) != 1) {
            return std::nullopt;
        }
        alignas(8) std::array<std::uint8_t, 256> bytes{};
        auto* const header = reinterpret_cast<mlx5dv_devx_async_event_hdr*>(bytes.data());
        if (mlx5dv_devx_get_event(_events, header, bytes.size()) < 0 || header->cookie != _number) {
            return std::nullopt;
        }
        return static_cast<prm::event_type>(header->out_data[1]); // of the 64 bytes of the event
    }

    bool is_active() const
    {
        prm::storage<prm::plain_dct_in> input;
        prm::storage<prm::query_dct_out> output;
        (*input).put<prm::command::query_dct>(prm::plain_dct_in::opcode);
        (void)(*input).set(prm::plain_dct_in::dctn, _number);
        worked(mlx5dv_devx_obj_query(_dct, input.bytes.data(), input.bytes.size(), output.bytes.data(),
                                     output.bytes.size()),
               "QUERY_DCT");
        return (*output).at(prm::query_dct_out::dct_context).get(prm::dctc::state) == prm::dct_state::active;
    }

private:
    ibv_srq* _srq;
    mlx5dv_devx_obj* _dct              = nullptr;
    mlx5dv_devx_event_channel* _events = nullptr;
    std::uint32_t _number              = 0;
};

TEST_F(dynamic_claims, a_refused_request_leaves_the_target_as_it_is)
{
    ibv_cq* const receives = made(ibv_create_cq(pair.context(), 64, nullptr, nullptr, 0), "ibv_create_cq");
    {
        devx_target target(pair.pd(), receives, true);
        devx_target sends_only(pair.pd(), receives, false);
        dc_initiator bad(pair.pd(), _cq);
        dc_initiator good(pair.pd(), _cq);
        const dc_route route{.target = target.number()};
        ASSERT_EQ(write(good, route), IBV_WC_SUCCESS);
        EXPECT_EQ(write_beyond(bad, route), IBV_WC_REM_ACCESS_ERR);
        EXPECT_EQ(target.event(), prm::event_type::wq_access_error);
        EXPECT_TRUE(target.is_active());
        EXPECT_EQ(write(good, route), IBV_WC_SUCCESS) << "of another initiator";
        bad.reconnect();
        post_receive(target.receives(), _to->piece(0, 8));
        EXPECT_EQ(bad.send(route, _from->piece(0, piece_bytes)), IBV_WC_REM_INV_REQ_ERR) << "longer than the receive";
        ibv_wc received{};
        EXPECT_EQ(ibv_poll_cq(receives, 1, &received), 1) << "the receive that was consumed";
        EXPECT_NE(received.status, IBV_WC_SUCCESS);
        EXPECT_TRUE(target.is_active());
        EXPECT_EQ(write(good, route), IBV_WC_SUCCESS) << "of another initiator, again";
        bad.reconnect();
        EXPECT_EQ(write(bad, {.target = sends_only.number()}), IBV_WC_REM_INV_REQ_ERR);
        EXPECT_EQ(sends_only.event(), prm::event_type::wq_invalid_request);
        EXPECT_TRUE(sends_only.is_active());
    }
    ibv_destroy_cq(receives);
}

TEST_F(dynamic_claims, stream_channels_are_counted_modulo_their_number)
{
    if (_streams.max_log_num_concurent < 2 || _streams.max_log_num_errored < 1) {
        GTEST_SKIP() << "the device has no stream channels";
    }
    constexpr mlx5dv_dci_streams four{.log_num_concurent = 2, .log_num_errored = 1};
    dc_initiator initiator(pair.pd(), _cq, four);
    const auto by_channel = [&](std::uint16_t channel) {
        dc_route route = to_target();
        route.stream   = channel;
        return route;
    };
    EXPECT_EQ(write_beyond(initiator, by_channel(5)), IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(write(initiator, by_channel(1)), IBV_WC_WR_FLUSH_ERR) << "5 is channel 1 of 4";
    EXPECT_EQ(write(initiator, by_channel(2)), IBV_WC_SUCCESS);
    EXPECT_EQ(mlx5dv_dci_stream_id_reset(initiator.qp(), 1), 0);
    EXPECT_EQ(write(initiator, by_channel(1)), IBV_WC_SUCCESS);
    EXPECT_NE(mlx5dv_dci_stream_id_reset(initiator.qp(), 1), 0) << "it is not in error";
}

TEST_F(dynamic_claims, a_request_with_the_route_of_another_port_is_dropped)
{
    ibv_port_attr port{};
    worked(ibv_query_port(pair.context(), 1, &port), "ibv_query_port");
    if (port.link_layer != IBV_LINK_LAYER_INFINIBAND) {
        GTEST_SKIP() << "on Ethernet the route leads to the port, so such a request does not come there";
    }
    dc_initiator initiator(pair.pd(), _cq);
    dc_route route = to_target();
    worked(ibv_query_gid(pair.context(), 1, 0, &route.gid.emplace()), "ibv_query_gid");
    ASSERT_EQ(write(initiator, route), IBV_WC_SUCCESS) << "its own";
    route.gid->raw[15] ^= 0x5a;
    EXPECT_EQ(write(initiator, route), IBV_WC_RETRY_EXC_ERR);
}

// The name of an optional field of a transition.
const char* name_of(prm::qp_optional field)
{
    switch (field) {
    case prm::qp_optional::remote_read_enable:
        return "remote_read_enable";
    case prm::qp_optional::remote_atomic_enable:
        return "remote_atomic_enable";
    case prm::qp_optional::remote_write_enable:
        return "remote_write_enable";
    case prm::qp_optional::pkey_index:
        return "pkey_index";
    case prm::qp_optional::q_key:
        return "q_key";
    case prm::qp_optional::rnr_timeout:
        return "rnr_timeout";
    case prm::qp_optional::sra_max:
        return "sra_max";
    case prm::qp_optional::rra_max:
        return "rra_max";
    case prm::qp_optional::pm_state:
        return "pm_state";
    case prm::qp_optional::retry_count:
        return "retry_count";
    case prm::qp_optional::rnr_retry:
        return "rnr_retry";
    case prm::qp_optional::ack_timeout:
        return "ack_timeout";
    default:
        return "another field";
    }
}

constexpr std::array optional_fields{prm::qp_optional::remote_read_enable,
                                     prm::qp_optional::remote_atomic_enable,
                                     prm::qp_optional::remote_write_enable,
                                     prm::qp_optional::pkey_index,
                                     prm::qp_optional::q_key,
                                     prm::qp_optional::rnr_timeout,
                                     prm::qp_optional::sra_max,
                                     prm::qp_optional::rra_max,
                                     prm::qp_optional::pm_state,
                                     prm::qp_optional::retry_count,
                                     prm::qp_optional::rnr_retry,
                                     prm::qp_optional::ack_timeout};

class optional_fields_of_initiators : public dynamic_claims
{
protected:
    bool accepts(dc_initiator& initiator, prm::command transition, prm::qp_optional field) const
    {
        prm::storage<prm::modify_qp_in> input;
        prm::storage<prm::modify_qp_out> output;
        (void)(*input).set(prm::modify_qp_in::opcode, transition);
        (void)(*input).set(prm::modify_qp_in::qpn, initiator.qp()->qp_num);
        (void)(*input).set(prm::modify_qp_in::opt_param_mask, field);
        const auto context = (*input).at(prm::modify_qp_in::qpc);
        (void)context.set(prm::qpc::mtu, prm::path_mtu::bytes_1024);
        context.put<30>(prm::qpc::log_msg_max);
        (void)context.set(prm::qpc::pm_state, prm::path_migration::migrated);
        context.put<true>(prm::qpc::rae);
        context.put<7>(prm::qpc::retry_count);
        context.put<7>(prm::qpc::rnr_retry);
        context.put<1>(prm::qpc::min_rnr_nak);
        const auto path = context.at(prm::qpc::primary_address_path);
        context.at(prm::qpc::primary_address_path).put<1>(prm::ads::vhca_port_num);
        path.put<14>(prm::ads::ack_timeout);
        return run(mlx5dv_devx_qp_modify, initiator.qp(), input, output) == 0;
    }

    // Of all optional fields, those accepted by a transition that begins where `prepare` leads to.
    template <typename Prepare>
    std::string accepted(prm::command transition, const Prepare& prepare)
    {
        std::string names;
        for (const prm::qp_optional field : optional_fields) {
            dc_initiator initiator(pair.pd(), _cq);
            prepare(initiator);
            names +=
                accepts(initiator, transition, field) ? std::string(names.empty() ? "" : " ") + name_of(field) : "";
        }
        return names;
    }
};

TEST_F(optional_fields_of_initiators, are_those_that_ucx_sends_and_indexes)
{
    const std::string to_rtr = accepted(prm::command::init2rtr_qp, [](dc_initiator& one) { one.to_init(); });
    const std::string to_rts = accepted(prm::command::rtr2rts_qp, [](dc_initiator& one) {
        one.to_init();
        one.to_rtr();
    });
    RecordProperty("init2rtr", to_rtr);
    RecordProperty("rtr2rts", to_rts);
    EXPECT_EQ(to_rtr, "remote_atomic_enable pkey_index");
    EXPECT_EQ(to_rts, "rnr_timeout");
}

} // namespace
} // namespace ucxl::test

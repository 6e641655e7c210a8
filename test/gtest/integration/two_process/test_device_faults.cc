// A device that fails while it makes keys, or later: the window is then copied and the transfer is right, or the
// endpoint says that it failed. Nobody hangs, and no key is left to the device in the end.
#include "device_fabric.h"
#include "scenario.h"
#include "strided_window.h"
#include "transfer_batch.h"
#include "transports.h"

#include <format>
#include <string>

namespace ucxl::two_process
{

namespace
{

constexpr auto no_faults = "only the software device has faults";

pair_config fault_config(const char* scenario_name, unsigned rounds, const char* tls = "rc_x,lay_copy")
{
    pair_config config{.scenario = scenario_name, .variables = {{"UCX_TLS", tls}}, .rounds = rounds};
    for (auto& peer : config.expected) {
        peer.any_output = true; // what failed is logged
    }
    return config;
}

// Without rebinding, which has no way but an error if its bind fails.
void transfer(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        test::random random(test::derive_seed(arguments.seed, round));
        run_batch(session, random_batch(random, {.operations      = {operation::tag, operation::stream, operation::am,
                                                                     operation::put, operation::get},
                                                 .lengths         = {0, 1, 64, 4096, 65536},
                                                 .allow_rebinding = false}));
    }
    session.close();
}

const scenario transferring("faults.transfers", transfer);

// Everything arrives, whoever carries it.
void expect_transfers_despite(const std::string& fault)
{
    SCOPED_TRACE(fault);
    device_fabric fabric({"--fault", fault});
    auto config = fault_config("faults.transfers", 6);
    fabric.add_to(config.variables);
    EXPECT_PAIR(config);
    const auto counts = fabric.end();
    EXPECT_EQ(counts["keys_left"], 0);
    EXPECT_GT(counts["faults_injected"], 0);
}

class faults_of_binds : public testing::TestWithParam<unsigned>
{
};

TEST_P(faults_of_binds, leave_transfers_right)
{
    if (!has_software_device()) {
        GTEST_SKIP() << no_faults;
    }
    expect_transfers_despite(std::format("wqe:umr,first={}", GetParam()));
}

INSTANTIATE_TEST_SUITE_P(number, faults_of_binds, testing::Values(1u, 2u, 3u, 4u, 5u, 6u, 8u, 11u));

// Alone and mapped before, so that UCX's own keys are there: a command that fails is one of ours.
void keys_run_out(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    std::vector<std::unique_ptr<strided_window>> windows;
    unsigned num_keyed  = 0;
    unsigned num_copied = 0;
    test::random random(arguments.seed);
    run_batch(session, random_batch(random, {.operations = {operation::tag}, .lengths = {64, 4096, 300000}}));
    constexpr unsigned turn = 16;
    for (unsigned i = 0; i < arguments.rounds; ++i) {
        if (i % turn == 0) {
            session.barrier(); // so that both peers get keys
        }
        windows.push_back(std::make_unique<strided_window>(context.get(), strided_shape{.block = 256, .number = 16}));
        ++(windows.back()->memory_type() == UCS_MEMORY_TYPE_RDMA ? num_keyed : num_copied);
    }
    check(num_keyed > 0 && num_copied > 0, "{} windows have keys, {} are copied", num_keyed, num_copied);
    // UCX needs keys as well. A peer that still makes windows would take them.
    session.barrier();
    windows.erase(windows.begin(), windows.begin() + windows.size() / 3);
    session.barrier();
    const ucp_request_param_t param{};
    for (unsigned i = 0; i < windows.size(); ++i) {
        auto& window = *windows[i];
        if (arguments.plays(0)) {
            window.fill(i);
            check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.address(), window.length(), i, &param)),
                     "send");
        } else {
            check_ok(session.wait(
                         ucp_tag_recv_nbx(session.worker(), window.address(), window.length(), i, UINT64_MAX, &param)),
                     "receive");
        }
        window.verify(i, "after a transfer");
    }
    session.close();
}

const scenario running_out("faults.keys_run_out", keys_run_out);

TEST(faults_of_keys, that_run_out_leave_the_other_windows_copied)
{
    if (!has_software_device()) {
        GTEST_SKIP() << no_faults;
    }
    for (const char* const threshold : {"0", "inf"}) {
        device_fabric fabric({"--fault", "keys=600"});
        auto config = fault_config("faults.keys_run_out", 600);
        config.variables.emplace_back("UCX_LAYOUT_MAP_CACHE_SIZE", "0");
        config.variables.emplace_back("UCX_RNDV_THRESH", threshold);
        fabric.add_to(config.variables);
        EXPECT_PAIR(config);
        EXPECT_EQ(fabric.end()["keys_left"], 0);
    }
}

// Transfers until one fails. The peer that sees it tells the other one, which closes its endpoint by force while it
// still sends. Windows can be unmapped and mapped then, and nothing hangs.
void until_it_fails(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    strided_window window(context.get(), {.block = 4096, .number = 256});
    const ucp_request_param_t param{};
    bool is_told         = false;
    const auto has_ended = [&] {
        is_told = is_told || session.side_channel().try_receive().has_value();
        return is_told || session.endpoint_error() != UCS_OK;
    };
    session.barrier();
    std::vector<ucs_status_ptr_t> left;
    while (!has_ended()) {
        auto* const request =
            arguments.plays(0)
                ? ucp_tag_send_nbx(session.endpoint(), window.address(), window.length(), 1, &param)
                : ucp_tag_recv_nbx(session.worker(), window.address(), window.length(), 1, UINT64_MAX, &param);
        while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS && !has_ended()) {
            session.turn();
        }
        if (UCS_PTR_IS_PTR(request)) {
            left.push_back(request);
        }
    }
    if (!is_told) {
        session.side_channel().send({});
    }
    session.abandon();
    for (auto* const request : left) {
        if (arguments.plays(1) && ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_request_cancel(session.worker(), request);
        }
        session.wait(request);
    }
    window.verify_gaps("after the failure");
    window.unmap();
    window.map(context.get());
    const strided_window later(context.get(), {.block = 512, .number = 64});
    window.unmap();
}

const scenario failing("faults.until_it_fails", until_it_fails);

struct operation_fault {
    const char* scheme;
    const char* fault;
};

void PrintTo(const operation_fault& each, std::ostream* to)
{
    *to << each.fault;
}

class faults_in_flight : public testing::TestWithParam<std::tuple<operation_fault, transport_set>>
{
};

TEST_P(faults_in_flight, reach_the_endpoints)
{
    if (!has_software_device()) {
        GTEST_SKIP() << no_faults;
    }
    const auto& [fault, transports] = GetParam();
    device_fabric fabric({"--fault", fault.fault});
    auto config = config_for({transports, "y"}, "faults.until_it_fails", 1);
    for (auto& peer : config.expected) {
        peer.any_output = true;
    }
    config.deadline_s = 15;
    config.variables.emplace_back("UCX_RNDV_SCHEME", fault.scheme);
    notice_failures_soon(config.variables);
    fabric.add_to(config.variables);
    EXPECT_PAIR(config);
    EXPECT_EQ(fabric.end()["keys_left"], 0);
}

constexpr operation_fault operation_faults[] = {
    {"get_zcopy", "wqe:rdma_read,first=5,times=all"},
    {"get_zcopy", "wqe:rdma_read,first=7,times=all,syndrome=remote_access"},
};

INSTANTIATE_TEST_SUITE_P(matrix, faults_in_flight,
                         testing::Combine(testing::ValuesIn(operation_faults),
                                          testing::ValuesIn(transports({}, {"rc_x", "dc_x"}))));

} // namespace

} // namespace ucxl::two_process

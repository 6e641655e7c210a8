// Endpoints with error handling: peers get keys of their own for each transfer, which they lose when the endpoint
// fails. Such keys show what the window shows, and end with it.
#include "device_fabric.h"
#include "remote_key.h"
#include "scenario.h"
#include "strided_window.h"
#include "transports.h"

#include <string>

namespace ucxl::two_process
{

namespace
{

constexpr strided_shape shape{.block = 64, .number = 2048};

void transfer(session& session, strided_window& window, unsigned salt, const char* moment)
{
    const ucp_request_param_t param{};
    if (session.plays(0)) {
        window.fill(salt);
        session.barrier();
        check_ok(session.wait(ucp_tag_send_nbx(session.endpoint(), window.address(), window.length(), 1, &param)),
                 moment);
    } else {
        const auto request =
            ucp_tag_recv_nbx(session.worker(), window.address(), window.length(), 1, UINT64_MAX, &param);
        session.barrier();
        check_ok(session.wait(request), moment);
    }
    session.barrier();
    window.verify(salt, moment);
}

void rebound(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = true});
    strided_window window(context.get(), shape);
    transfer(session, window, 1, "first transfer");
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        std::byte* const before = window.rebind();
        transfer(session, window, 2 + round, "transfer after rebinding");
        window.verify_untouched(before, "memory from before rebinding");
        munmap(before, shape.span());
    }
    window.expect_no_copies("after all transfers");
    session.close();
}

// The window is kept while it is not mapped, and its memory is replaced meanwhile.
void replaced_memory(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context, {.error_handling = std::getenv("UCXL_PEER_MODE") != nullptr});
    strided_window window(context.get(), shape);
    transfer(session, window, 1, "first transfer");
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        window.unmap();
        if (std::getenv("UCXL_KEEP_MEMORY") == nullptr) {
            std::byte* const place = window.memory();
            window.release_memory();
            window.make_memory(place);
        }
        window.map(context.get());
        transfer(session, window, 2 + round, "transfer after the memory was replaced");
    }
    session.close();
}

const scenario rebinding("errors.rebound", rebound);
const scenario replacing("errors.replaced_memory", replaced_memory);

struct scheme {
    const char* name;
    environment variables;
};

void PrintTo(const scheme& each, std::ostream* to)
{
    *to << each.name;
}

class error_handling : public testing::TestWithParam<std::tuple<scheme, transport_set>>
{
protected:
    static pair_config config(const char* scenario_name, unsigned rounds)
    {
        const auto& [scheme, transports] = GetParam();
        auto config                      = config_for({transports, "y"}, scenario_name, rounds);
        config.variables.insert(config.variables.end(), scheme.variables.begin(), scheme.variables.end());
        return config;
    }
};

TEST_P(error_handling, keys_of_transfers_show_what_a_rebound_window_shows)
{
    EXPECT_PAIR(config("errors.rebound", 3));
}

TEST_P(error_handling, keys_of_transfers_show_new_memory_under_a_kept_window)
{
    auto pair = config("errors.replaced_memory", 3);
    EXPECT_PAIR(pair);
    pair.variables.emplace_back("UCXL_PEER_MODE", "1");
    EXPECT_PAIR(pair);
}

// UCX asks now and then whether the peer is alive, by empty messages on the lanes that carry the windows.
TEST_P(error_handling, with_keepalive)
{
    auto pair = config("errors.rebound", 20);
    pair.variables.emplace_back("UCX_KEEPALIVE_INTERVAL", "1ms");
    EXPECT_PAIR(pair);
}

TEST_P(error_handling, sleeping_until_something_happens)
{
    auto pair   = config("errors.rebound", 3);
    pair.wakeup = true;
    EXPECT_PAIR(pair);
    pair.variables.emplace_back("UCX_KEEPALIVE_INTERVAL", "1ms");
    EXPECT_PAIR(pair);
}

// Datagrams and transports of the host beside a device: not every one of them has a key to lose, but what arrives is
// right.
class error_handling_anywhere : public testing::TestWithParam<transport_set>
{
};

TEST_P(error_handling_anywhere, transfers_show_new_memory_under_a_kept_window)
{
    for (const char* const threshold : {"0", "auto", "inf"}) {
        auto pair = config_for({GetParam(), "y"}, "errors.replaced_memory", 3);
        pair.variables.emplace_back("UCXL_PEER_MODE", "1");
        pair.variables.emplace_back("UCX_RNDV_THRESH", threshold);
        EXPECT_PAIR(pair);
        pair.wakeup = true;
        pair.variables.emplace_back("UCX_KEEPALIVE_INTERVAL", "1ms");
        EXPECT_PAIR(pair);
    }
}

INSTANTIATE_TEST_SUITE_P(matrix, error_handling_anywhere,
                         testing::ValuesIn(transports({}, {"rc_x", "rc_v", "dc_x", "ud_x", "ud_v", "far", "default"})),
                         [](const auto& each) { return each.param.name; });

// The software device looks at memory by address, so it finds new pages under an old registration. But it counts
// registrations: one for each new memory, and none for memory that stayed.
TEST(kept_windows, are_registered_again_if_and_only_if_their_memory_was_replaced)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "only the software device counts its keys";
    }
    for (const bool is_replaced : {true, false}) {
        const auto keys_made = [&](unsigned rounds) {
            device_fabric fabric;
            auto config = config_for({transports({}, {"rc_x"}).front(), "y"}, "errors.replaced_memory", rounds);
            if (!is_replaced) {
                config.variables.emplace_back("UCXL_KEEP_MEMORY", "1");
            }
            fabric.add_to(config.variables);
            EXPECT_PAIR(config);
            return fabric.end()["commands"]["create_mkey"]["count"].get<int>();
        };
        EXPECT_EQ(keys_made(13) - keys_made(3), is_replaced ? 2 * 10 : 0);
    }
}

const scheme schemes[] = {
    {"get", {{"UCX_RNDV_THRESH", "0"}, {"UCX_RNDV_SCHEME", "get_zcopy"}}},
    {"put", {{"UCX_RNDV_THRESH", "0"}, {"UCX_RNDV_SCHEME", "put_zcopy"}}},
};

std::string error_name(const testing::TestParamInfo<std::tuple<scheme, transport_set>>& each)
{
    return std::string(std::get<0>(each.param).name) + "_" + std::get<1>(each.param).name;
}

INSTANTIATE_TEST_SUITE_P(matrix, error_handling,
                         testing::Combine(testing::ValuesIn(schemes),
                                          testing::ValuesIn(transports({}, {"rc_x", "rc_v", "dc_x", "far"}))),
                         error_name);

} // namespace

} // namespace ucxl::two_process

// lay_cma between two processes: remote access to windows over memory of the application while their owner does
// nothing, windows that are bound elsewhere under their keys, and owners that die.
#include "passive_target.h"
#include "remote_key.h"
#include "scenario.h"
#include "transports.h"

#include <cstring>

#include <signal.h>
#include <unistd.h>

namespace ucxl::two_process
{

namespace
{

// The owner is killed: its keys neither read nor write the memory of the process that gets its number.
void dead_owner(const peer_arguments& arguments)
{
    constexpr std::size_t length = 65536;
    const context_handle context(arguments);
    session session(arguments, context);
    settle(session);
    if (arguments.plays(1)) {
        const side own(session, {.kind = side_kind::window, .seed = 1}, length);
        bytes key(sizeof(pid_t));
        const pid_t self = getpid();
        std::memcpy(key.data(), &self, sizeof(self));
        append_key(key, session.context(), own.memh(), own.buffer());
        session.side_channel().send(key);
        wait_passively(session);
        raise(SIGKILL);
    }
    const bytes expected = wait_passively(session);
    pid_t owner          = 0;
    std::memcpy(&owner, expected.data(), sizeof(owner));
    std::span<const std::byte> rest = std::span(expected).subspan(sizeof(owner));
    {
        const remote_key key(session.endpoint(), rest);
        session.side_channel().send({});
        wait_for_death(owner);
        bytes data(length, std::byte{7});
        const ucp_request_param_t param{};
        const auto address = key.address();
        const auto put = session.wait(ucp_put_nbx(session.endpoint(), data.data(), length, address, key.get(), &param));
        check(put == UCS_ERR_INVALID_ADDR, "the put ended with {}", ucs_status_string(put));
        const auto get = session.wait(ucp_get_nbx(session.endpoint(), data.data(), length, address, key.get(), &param));
        check(get == UCS_ERR_INVALID_ADDR, "the get ended with {}", ucs_status_string(get));
        check(data == bytes(length, std::byte{7}), "bytes came from somewhere");
    }
    session.abandon();
}

const scenario passive("lay_cma.passive_target",
                       [](const peer_arguments& arguments) { passive_target(arguments, side_kind::window); });
const scenario death("lay_cma.dead_owner", dead_owner);

// Includes windows of short blocks, because random layouts have few long ones.
pair_config with_lay_cma(const setting& choice, const char* scenario_name, unsigned rounds)
{
    auto config = config_for(choice, scenario_name, rounds);
    config.variables.emplace_back("UCX_LAY_CMA_MIN_BLOCK", "1");
    return config;
}

class process_memory : public testing::TestWithParam<setting>
{
};

TEST_P(process_memory, puts_and_gets_need_nothing_of_the_target)
{
    EXPECT_PAIR(with_lay_cma(GetParam(), "lay_cma.passive_target", 60));
}

TEST_P(process_memory, keys_outlive_rebinding)
{
    EXPECT_PAIR(with_lay_cma(GetParam(), "key_outlives_rebind", 12));
}

TEST_P(process_memory, atomics_are_left_to_the_target)
{
    EXPECT_PAIR(with_lay_cma(GetParam(), "atomics", 1));
    EXPECT_PAIR(with_lay_cma(GetParam(), "atomics_of_blocks.every_operation", 1));
}

TEST_P(process_memory, transfers_of_every_kind_in_one_pass)
{
    auto config = with_lay_cma(GetParam(), "mixed", 10);
    config.variables.emplace_back("UCX_RNDV_THRESH", "0");
    EXPECT_PAIR(config);
    EXPECT_PAIR(with_lay_cma(GetParam(), "mixed", 10));
}

TEST_P(process_memory, of_a_killed_owner_is_gone)
{
    auto config               = with_lay_cma(GetParam(), "lay_cma.dead_owner", 1);
    config.expected[0].output = "lay_cma: 65536 bytes at .* are of a remote window that is gone";
    config.expected[1].signal = SIGKILL;
    EXPECT_PAIR(config);
}

const std::vector<transport_set> with_it = {
    {"default", nullptr, false},
    {"posix", "posix,lay_copy,lay_cma", false},
    {"all", "posix,cma,lay_copy,lay_shm,lay_cma", false},
};

INSTANTIATE_TEST_SUITE_P(matrix, process_memory, testing::Combine(testing::ValuesIn(with_it), testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process

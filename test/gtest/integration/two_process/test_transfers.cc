// Every operation over every transport and both protocol versions: random layouts, lengths, sub-ranges and kinds of
// memory on both sides, several transfers at once.
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include <string>
#include <tuple>

namespace ucxl::two_process
{

namespace
{

void run_transfers(const peer_arguments& arguments, const batch_options& options)
{
    const context_handle context(arguments);
    session session(arguments, context);
    for (unsigned round = 0; round < arguments.rounds; ++round) {
        test::random random(test::derive_seed(arguments.seed, round));
        run_batch(session, random_batch(random, options));
    }
    session.close();
}

const std::vector<std::uint64_t> usual_lengths = {0, 1, 7, 64, 4096, 4096, 65536, 65536, 1 << 20};
const std::vector<std::uint64_t> short_lengths = {0, 1, 64, 4096, 65536};
const std::vector<std::uint64_t> large_lengths = {64 << 20};
const std::vector<operation> all_operations    = {operation::tag, operation::stream, operation::am, operation::put,
                                                  operation::get};

scenario_function transfers_of(const std::vector<operation>& operations, const std::vector<std::uint64_t>& lengths,
                               unsigned max_transfers = 4)
{
    return [=](const peer_arguments& arguments) {
        run_transfers(arguments, {.operations = operations, .lengths = lengths, .max_transfers = max_transfers});
    };
}

const scenario tag_transfers("tag", transfers_of({operation::tag}, usual_lengths));
const scenario stream_transfers("stream", transfers_of({operation::stream}, usual_lengths));
const scenario am_transfers("am", transfers_of({operation::am}, usual_lengths));
const scenario put_transfers("put", transfers_of({operation::put}, usual_lengths));
const scenario get_transfers("get", transfers_of({operation::get}, usual_lengths));
const scenario mixed_transfers("mixed", transfers_of(all_operations, usual_lengths));
const scenario short_transfers("mixed_short", transfers_of(all_operations, short_lengths));
const scenario large_tag("large_tag", transfers_of({operation::tag}, large_lengths, 1));
const scenario large_rma("large_rma", transfers_of({operation::put, operation::get}, large_lengths, 1));

using matrix_cell = std::tuple<transport_set, const char*, const char*>; // and the scenario

class transfers : public testing::TestWithParam<matrix_cell>
{
};

std::string cell_name(const testing::TestParamInfo<matrix_cell>& info)
{
    const auto& [transports, protocols, scenario_name] = info.param;
    return std::string(scenario_name) + "_" + setting_name({{transports, protocols}, info.index});
}

TEST_P(transfers, every_byte_is_where_it_belongs)
{
    const auto& [transports, protocols, scenario_name] = GetParam();
    EXPECT_PAIR(config_for({transports, protocols}, scenario_name, 10));
}

INSTANTIATE_TEST_SUITE_P(matrix, transfers,
                         testing::Combine(testing::ValuesIn(all_transports()), testing::ValuesIn(protocols_of_most()),
                                          testing::Values("tag", "stream", "am", "put", "get")),
                         cell_name);

class transfers_of_old_protocols : public transfers
{
};

TEST_P(transfers_of_old_protocols, every_byte_is_where_it_belongs)
{
    const auto& [transports, protocols, scenario_name] = GetParam();
    EXPECT_PAIR(config_for({transports, protocols}, scenario_name, 10));
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(transfers_of_old_protocols); // on the host, which has them above
INSTANTIATE_TEST_SUITE_P(matrix, transfers_of_old_protocols,
                         testing::Combine(testing::ValuesIn(transports({}, {"rc_x"})),
                                          testing::ValuesIn(only_old_protocols()), testing::Values("mixed")),
                         cell_name);

class modes : public testing::TestWithParam<setting>
{
};

TEST_P(modes, rendezvous_for_every_length)
{
    auto config = config_for(GetParam(), "mixed", 6);
    config.variables.emplace_back("UCX_RNDV_THRESH", "0");
    EXPECT_PAIR(config);
}

TEST_P(modes, eager_for_every_length)
{
    auto config = config_for(GetParam(), "mixed", 6);
    config.variables.emplace_back("UCX_RNDV_THRESH", "inf");
    EXPECT_PAIR(config);
}

TEST_P(modes, without_the_memory_type_cache)
{
    auto config = config_for(GetParam(), "mixed", 4);
    config.variables.emplace_back("UCX_MEMTYPE_CACHE", "n");
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(matrix, modes,
                         testing::Combine(testing::ValuesIn(all_transports()), testing::ValuesIn(protocols_of_most())),
                         setting_name);

class wakeup : public testing::TestWithParam<setting>
{
};

TEST_P(wakeup, sleeping_until_something_happens)
{
    auto config   = config_for(GetParam(), "mixed_short", 6);
    config.wakeup = true;
    EXPECT_PAIR(config);
}

// The transport self of stock UCX cannot wake up, so alone it gives no endpoint with UCP_FEATURE_WAKEUP.
INSTANTIATE_TEST_SUITE_P(matrix, wakeup,
                         testing::Combine(testing::ValuesIn(transports({"default", "posix", "sysv", "posix_cma", "tcp",
                                                                        "self_default"},
                                                                       {"rc_x", "rc_v", "dc_x", "ud_x", "far"})),
                                          testing::ValuesIn(protocols_of_most())),
                         setting_name);

class large : public testing::TestWithParam<setting>
{
};

TEST_P(large, messages_of_64_megabytes)
{
    EXPECT_PAIR(config_for(GetParam(), "large_tag", 1));
}

TEST_P(large, remote_access_of_64_megabytes)
{
    EXPECT_PAIR(config_for(GetParam(), "large_rma", 1));
}

INSTANTIATE_TEST_SUITE_P(matrix, large,
                         testing::Combine(testing::ValuesIn(is_on_device() ? transports({}, {"rc_x", "dc_x"})
                                                                           : all_transports()),
                                          testing::Values("y")),
                         setting_name);

} // namespace

} // namespace ucxl::two_process

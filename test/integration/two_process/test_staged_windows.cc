// Windows that no network card may register: every operation, also between a process with such windows and one with
// windows of the usual kind.
#include "scenario.h"
#include "transfer_batch.h"
#include "transports.h"

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>
#include <tuple>

#include <ucp/api/ucp.h>

namespace ucxl::two_process
{

namespace
{

constexpr auto option = "UCX_LAYOUT_KEYS_WINDOWS";

// Without this, the tests below could pass with windows of the usual kind.
void types(const peer_arguments& arguments)
{
    const context_handle context(arguments);
    session session(arguments, context);
    const char* const asked = std::getenv(option);
    const bool is_staged    = asked != nullptr && std::string_view(asked) == "copies" && protocols_know_memory_types();
    for (const auto kind : {side_kind::window, side_kind::allocated}) {
        const side window(session, {.kind = kind, .seed = arguments.seed}, 5000);
        ucp_mem_attr_t attr{};
        attr.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
        check_ok(ucp_mem_query(window.memh(), &attr), "ucp_mem_query");
        check((attr.mem_type == UCS_MEMORY_TYPE_RDMA) != is_staged && attr.mem_type != UCS_MEMORY_TYPE_HOST,
              "a window has memory type {}", static_cast<int>(attr.mem_type));
    }
    session.close();
}

const scenario types_of_windows("staged.types", types);

// What the two peers set the option to.
struct peer_carriers {
    const char* name;
    std::array<const char*, 2> values;
};

constexpr peer_carriers both   = {"both", {"copies", "copies"}};
constexpr peer_carriers first  = {"first", {"copies", "auto"}};
constexpr peer_carriers second = {"second", {"keys", "copies"}};

using staged_setting = std::tuple<peer_carriers, transport_set, const char*>;

class staged_windows : public testing::TestWithParam<staged_setting>
{
protected:
    static pair_config config(const char* scenario_name, unsigned rounds)
    {
        const auto& [carriers, transports, protocols] = GetParam();
        auto config                                   = config_for({transports, protocols}, scenario_name, rounds);
        config.variables.emplace_back("UCX_LAY_CMA_MIN_BLOCK", "1");
        for (std::size_t role = 0; role < 2; ++role) {
            config.own_variables[role].emplace_back(option, carriers.values[role]);
        }
        return config;
    }
};

std::string staged_name(const testing::TestParamInfo<staged_setting>& info)
{
    const auto& [carriers, transports, protocols] = info.param;
    return std::string(carriers.name) + "_" + setting_name({{transports, protocols}, info.index});
}

TEST_P(staged_windows, have_another_type)
{
    EXPECT_PAIR(config("staged.types", 1));
}

TEST_P(staged_windows, transfers_of_every_kind)
{
    EXPECT_PAIR(config("mixed", 20));
}

TEST_P(staged_windows, rendezvous_for_every_length)
{
    auto pair = config("mixed", 6);
    pair.variables.emplace_back("UCX_RNDV_THRESH", "0");
    EXPECT_PAIR(pair);
}

TEST_P(staged_windows, without_the_memory_type_cache)
{
    auto pair = config("mixed", 4);
    pair.variables.emplace_back("UCX_MEMTYPE_CACHE", "n");
    EXPECT_PAIR(pair);
}

TEST_P(staged_windows, atomics)
{
    EXPECT_PAIR(config("atomics", 1));
    EXPECT_PAIR(config("atomics_of_blocks.every_operation", 1));
}

const std::vector<transport_set> some_transports = {
    {"default", nullptr, false},
    {"posix", "posix,lay_copy", false},
    {"posix_shm", "posix,lay_copy,lay_shm", false},
    {"posix_cma", "posix,lay_copy,lay_cma", false},
    {"tcp", "tcp,lay_copy", false},
};

INSTANTIATE_TEST_SUITE_P(matrix, staged_windows,
                         testing::Combine(testing::Values(both, first, second), testing::ValuesIn(some_transports),
                                          testing::Values("y")),
                         staged_name);
// With the older protocols there are no such windows, and nothing else changes.
INSTANTIATE_TEST_SUITE_P(old_protocols, staged_windows,
                         testing::Combine(testing::Values(both, first, second),
                                          testing::ValuesIn(transports({"posix", "tcp"})),
                                          testing::ValuesIn(only_old_protocols())),
                         staged_name);

TEST(staged_windows_alone, transfers_of_every_kind_within_a_process)
{
    pair_config config{
        .scenario = "mixed", .variables = {{"UCX_TLS", "self,lay_copy"}, {option, "copies"}}, .rounds = 20};
    config.programs[1] = peer_program::none;
    EXPECT_PAIR(config);
}

// Transfers that leave the target alone show that the transports for the host's windows are used at all.
class staged_passive_target : public testing::TestWithParam<std::tuple<const char*, transport_set>>
{
};

TEST_P(staged_passive_target, puts_and_gets_need_nothing_of_the_target)
{
    const auto& [scenario_name, transports] = GetParam();
    auto config                             = config_for({transports, "y"}, scenario_name, 60);
    config.variables.emplace_back("UCX_LAY_CMA_MIN_BLOCK", "1");
    config.variables.emplace_back(option, "copies");
    EXPECT_PAIR(config);
}

INSTANTIATE_TEST_SUITE_P(
    matrix, staged_passive_target,
    testing::Values(std::tuple("lay_shm.passive_target", transport_set{"tcp", "tcp,lay_copy,lay_shm", false}),
                    std::tuple("lay_shm.passive_atomics", transport_set{"posix", "posix,lay_copy,lay_shm", false}),
                    std::tuple("lay_cma.passive_target", transport_set{"tcp", "tcp,lay_copy,lay_cma", false})));

} // namespace

} // namespace ucxl::two_process

// Exported memory between a side with the library and a side with stock UCX.
#include "device_fabric.h"
#include "pair.h"
#include "stock_export.h"

namespace ucxl::two_process
{

namespace
{

struct sides {
    const char* name;
    peer_program host;
    environment host_options;
    peer_program dpu;
    bool is_refused;
};

void PrintTo(const sides& each, std::ostream* to)
{
    *to << each.name;
}

class stock_exports : public testing::TestWithParam<sides>
{
};

TEST_P(stock_exports, are_imported_and_handles_of_the_library_are_refused_without_it)
{
    if (!has_software_device()) {
        GTEST_SKIP() << "needs a device with two functions";
    }
    const sides& each = GetParam();
    pair_config config{.scenario = "export.plain", .variables = {{"UCX_TLS", "rc_x"}, {"UCX_ZCOPY_THRESH", "0"}}};
    config.programs         = {each.host, each.dpu};
    config.own_variables[0] = {{"UCX_NET_DEVICES", "mlx5_0:1"}};
    config.own_variables[1] = {{"UCX_NET_DEVICES", "mlx5_1:1"}};
    config.own_variables[0].insert(config.own_variables[0].end(), each.host_options.begin(), each.host_options.end());
    if (each.is_refused) {
        config.variables.emplace_back(refused_variable, "1");
        config.expected[1].output = "no suitable UCT memory domains to perform importing on";
    }
    device_fabric fabric({"--functions", "2"});
    fabric.add_to(config.variables);
    EXPECT_PAIR(config);
    EXPECT_EQ(fabric.end()["keys_left"], 0);
}

const sides all_sides[] = {
    {"library_to_library", peer_program::with_library, {}, peer_program::with_library, false},
    {"library_without_keys_to_library",
     peer_program::with_library,
     {{"UCX_LAYOUT_KEYS_ENABLE", "n"}},
     peer_program::with_library,
     false},
    {"library_with_an_empty_pool_to_library",
     peer_program::with_library,
     {{"UCX_LAYOUT_KEYS_EXPORT_MAX", "0"}},
     peer_program::with_library,
     false},
    {"stock_to_library", peer_program::plain, {}, peer_program::with_library, false},
    {"library_to_stock", peer_program::with_library, {}, peer_program::plain, true},
};

INSTANTIATE_TEST_SUITE_P(sides, stock_exports, testing::ValuesIn(all_sides),
                         [](const auto& each) { return each.param.name; });

} // namespace

} // namespace ucxl::two_process

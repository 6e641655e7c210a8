// ucx_layout_info --device: what a network card makes of a layout.
#include "tool.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ucxl::test
{

namespace
{

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* tool = "ucx_layout_info";

outcome info(const std::vector<std::string>& arguments)
{
    return run_tool(tool, arguments);
}

TEST(info_device, published_limits_need_no_device)
{
    const outcome column = info({"--device", "published", "strided(1024,8,8192)"});
    ASSERT_EQ(0, column.status) << column.err;
    EXPECT_THAT(column.out, StartsWith("device         published: 65536 entries in a list"));
    EXPECT_THAT(column.out, HasSubstr("repeat block of 1 entries, 1024 turns, 8192 bytes"));
    EXPECT_THAT(column.out, HasSubstr("advice         pack instead"));
    const outcome rows = info({"strided(1000,4096,65536)", "--device", "published"});
    ASSERT_EQ(0, rows.status) << rows.err;
    EXPECT_THAT(rows.out, HasSubstr("rejected       repeat block: a stride of 65536 is not from 0 to 65535"));
    EXPECT_THAT(rows.out, HasSubstr("advice         a key"));
}

TEST(info_device, a_device_that_is_not_there_is_named)
{
    const outcome result = info({"--device", "nonesuch", "strided(4,8,64)"});
    EXPECT_EQ(1, result.status);
    EXPECT_EQ("", result.out);
    EXPECT_THAT(result.err, HasSubstr("there is no mlx5 device 'nonesuch'"));
}

TEST(info_device, a_wrong_layout_is_an_error_of_the_layout)
{
    const outcome result = info({"--device", "published", "strided(4,"});
    EXPECT_EQ(1, result.status);
    EXPECT_THAT(result.err, HasSubstr("column"));
}

#ifdef SOFTHCA_LIBRARY
environment software()
{
    const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY"); // its library, for programs without it
    return {{"LD_PRELOAD", std::string(SOFTHCA_LIBRARY) + (sanitizer != nullptr ? std::string(":") + sanitizer : "")}};
}

TEST(info_device, the_device_is_the_first_one_or_the_one_named)
{
    const std::string layout = "strided(1024,8,8192)";
    const outcome first      = run_tool(tool, {"--device", layout}, software());
    ASSERT_EQ(0, first.status) << first.err;
    EXPECT_THAT(first.out, StartsWith("device         mlx5_0: 65532 entries in a list"));
    EXPECT_EQ(first.out, run_tool(tool, {layout, "--device"}, software()).out);
    EXPECT_EQ(first.out, run_tool(tool, {"--device", "mlx5_0", layout}, software()).out);
    EXPECT_EQ(1, run_tool(tool, {"--device", "mlx5_7", layout}, software()).status);
}

// Of a line of the table, what the device says and what is used.
std::string line_of(const std::string& capability, const environment& more)
{
    environment all = software();
    all.insert(all.end(), more.begin(), more.end());
    const outcome shown = run_tool(tool, {"--device", "mlx5_0"}, all);
    EXPECT_EQ(0, shown.status) << shown.err;
    const auto begin = shown.out.find("\n" + capability + "  ");
    if (begin == std::string::npos) {
        return shown.out;
    }
    std::istringstream line(shown.out.substr(begin + 1 + capability.size(), shown.out.find('\n', begin + 1)));
    std::string said;
    std::string used;
    line >> said >> used;
    return said + " " + used;
}

TEST(info_device, without_a_layout_the_device_is_described)
{
    const outcome named = run_tool(tool, {"--device", "mlx5_0"}, software());
    ASSERT_EQ(0, named.status) << named.err;
    EXPECT_THAT(named.out, StartsWith("device                         mlx5_0\ncapability"));
    EXPECT_EQ(named.out, run_tool(tool, {"--device"}, software()).out);
    const outcome absent = run_tool(tool, {"--device", "mlx5_7"}, software());
    EXPECT_EQ(1, absent.status);
    EXPECT_THAT(absent.err, HasSubstr("there is no mlx5 device 'mlx5_7'"));
}

TEST(info_device, a_port_that_is_down_is_named)
{
    const std::string command = "env -u LD_PRELOAD " + program_path("softhca-run") +
                                " --change port_down:mlx5_0 && exec " + program_path(tool) + " --device mlx5_0";
    environment variables;
    if (const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY")) {
        variables.emplace_back("LD_PRELOAD", sanitizer);
    }
    const outcome shown = run_tool("softhca-run", {"--", "sh", "-c", command}, variables);
    EXPECT_EQ(1, shown.status);
    EXPECT_THAT(shown.err, HasSubstr("port 1 is not active"));
}

struct refused_feature {
    const char* profile;
    const char* fault; // of softhca-run, or ""
    const char* capability;
    const char* said_and_used;
};

class described_device : public testing::TestWithParam<refused_feature>
{
};

TEST_P(described_device, shows_what_the_self_test_did_not_find)
{
    const auto& [profile, fault, capability, expected] = GetParam();
    environment variables{{"SOFTHCA_PROFILE", profile}};
    if (*fault != 0) {
        variables.emplace_back("SOFTHCA_FAULT", fault);
    }
    EXPECT_EQ(expected, line_of(capability, variables));
}

const refused_feature features[] = {
    {"bf3", "", "repeat blocks", "yes yes"},
    {"vf", "", "repeat blocks", "no no"},
    {"bf3", "refuse:umr_repeat_block", "repeat blocks", "yes no"},
    {"bf3", "refuse:umr_pointer", "lists in memory", "yes no"},
    {"vf", "", "nested keys by local rights", "no no"},
    {"bf3", "refuse:local_nested", "nested keys by local rights", "yes no"},
    {"cx6dx", "refuse:deep_local_nested", "nested keys by local rights", "yes no"},
    {"bf3", "refuse:nested_repeat_block", "levels of keys", "4 1"},
    {"cx6dx", "refuse:nested_atomic", "atomic operations", "yes no"},
    {"cx7", "", "atomic operations", "yes no"},
    {"vf", "", "atomic operations", "yes no"},
    {"bf3", "refuse:indirect_atomic", "atomic operations", "yes no"},
    {"bf3", "refuse:umr_start_addr", "start addresses", "umr ksm"},
    {"cx6dx", "", "keys of equal entries", "yes yes"},
    {"none,fixed_buffer_size=0", "", "keys of equal entries", "no no"},
    {"none,fixed_buffer_size=0", "refuse:umr_start_addr", "start addresses", "umr none"},
    {"cx7", "", "fence of key changes", "strong strong"},
    {"bf3,high_keys=1", "", "log of keys", "24 24"},
    {"cx6dx", "", "opens keys to other functions", "no no"},
    {"bf3", "", "opens keys to other functions", "yes yes"},
    {"cx7", "", "opens keys to other functions", "yes no"},
};

INSTANTIATE_TEST_SUITE_P(features, described_device, testing::ValuesIn(features), [](const auto& test) {
    std::string name = test.param.profile + std::string("_") + test.param.capability;
    name += *test.param.fault != 0 ? "_refused" : "";
    std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return name;
});
#endif

} // namespace

} // namespace ucxl::test

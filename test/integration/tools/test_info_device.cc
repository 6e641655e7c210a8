// ucx_layout_info --device: what a network card makes of a layout.
#include "tool.h"

#include <cstdlib>

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
TEST(info_device, the_device_is_the_first_one_or_the_one_named)
{
    const char* const sanitizer = std::getenv("UCXL_SANITIZER_LIBRARY"); // its library, for programs without it
    const environment software{
        {"LD_PRELOAD", std::string(SOFTHCA_LIBRARY) + (sanitizer != nullptr ? std::string(":") + sanitizer : "")}};
    const std::string layout = "strided(1024,8,8192)";
    const outcome first      = run_tool(tool, {"--device", layout}, software);
    ASSERT_EQ(0, first.status) << first.err;
    EXPECT_THAT(first.out, StartsWith("device         mlx5_0: 65532 entries in a list"));
    EXPECT_EQ(first.out, run_tool(tool, {layout, "--device"}, software).out);
    EXPECT_EQ(first.out, run_tool(tool, {"--device", "mlx5_0", layout}, software).out);
    EXPECT_EQ(1, run_tool(tool, {"--device", "mlx5_7", layout}, software).status);
}
#endif

} // namespace

} // namespace ucxl::test

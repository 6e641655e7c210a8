#include "nixl/kernel_copies.h"
#include "support/must.h"

#include <cstdlib>
#include <gtest/gtest.h>

using namespace ucxl::nixl;
using ucxl::test::must;

namespace
{

ucx_layout::layout blocks_of(std::size_t length)
{
    return must(ucx_layout::layout::create_strided(length, {{.count = 100, .stride = 65536}}));
}

TEST(kernel_copies, are_for_blocks_as_long_as_the_user_says)
{
    constexpr const char* variable = "UCX_LAY_CMA_MIN_BLOCK";
    const auto are_taken           = [&](const char* value, std::size_t length) {
        if (value != nullptr) {
            setenv(variable, value, 1);
        }
        const bool are = is_for_kernel(blocks_of(length));
        unsetenv(variable);
        return are;
    };
    EXPECT_TRUE(are_taken(nullptr, 512)) << "what the backend chooses";
    EXPECT_FALSE(are_taken(nullptr, 511));
    EXPECT_TRUE(are_taken("512", 512));
    EXPECT_TRUE(are_taken("16k", 16384));
    EXPECT_FALSE(are_taken("16k", 16383));
    EXPECT_FALSE(are_taken("inf", 65536));
    EXPECT_FALSE(are_taken("many", 65536)) << "lay_cma is not there then";
}

} // namespace

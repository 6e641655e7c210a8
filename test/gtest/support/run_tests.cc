#include "run_tests.h"

#include "random.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace ucxl::test
{

int run_tests(int argc, char** argv)
{
    testing::InitGoogleTest(&argc, argv);
    const std::string seed = std::to_string(run_seed());
    setenv("UCXL_TEST_SEED", seed.c_str(), 1);
    // What is given there comes later and wins.
    const char* const given = std::getenv("RC_PARAMS");
    setenv("RC_PARAMS", ("seed=" + seed + " " + (given != nullptr ? given : "")).c_str(), 1);
    if (!GTEST_FLAG_GET(list_tests)) {
        std::printf("UCXL_TEST_SEED=%s\n", seed.c_str());
        std::fflush(stdout); // tests that end the program lose what is not written
    }
    const int failed = RUN_ALL_TESTS();
    if (failed != 0) {
        std::printf("The same again: UCXL_TEST_SEED=%s\n", seed.c_str());
    }
    return failed;
}

} // namespace ucxl::test

// The tests of this program need an mlx5 device. Without one in the machine, or always unless UCXL_TEST_DEVICE names one,
// the program runs itself again on the software device.
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include <gtest/gtest.h>

#include "key_life.h"

int main(int argc, char** argv)
{
    if (std::getenv("UCXL_TEST_DEVICE") == nullptr) {
        setenv("UCXL_TEST_DEVICE", "mlx5_0", 1);
        setenv("LD_PRELOAD", SOFTHCA_LIBRARY, 1);
        execv("/proc/self/exe", argv);
        std::perror("running this program on the software device");
        return 1;
    }
    if (std::getenv("UCXL_KEY_LIFE") != nullptr) {
        return ucxl::test::key_life();
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

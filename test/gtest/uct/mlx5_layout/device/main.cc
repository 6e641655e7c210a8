#include <cstdlib>

#include <gtest/gtest.h>

#include "key_life.h"
#include "software_device.h"

int main(int argc, char** argv)
{
    ucxl::test::use_software_device(argv, SOFTHCA_LIBRARY);
    if (std::getenv("UCXL_KEY_LIFE") != nullptr) {
        return ucxl::test::key_life();
    }
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}

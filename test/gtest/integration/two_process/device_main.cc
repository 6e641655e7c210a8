// main() of the same tests on a device: the software device, unless UCXL_TEST_DEVICE names another one.
#include "device_fabric.h"
#include "scenario.h"

#include "support/network_cards.h"
#include "support/run_tests.h"
#include "support/software_device.h"

#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>

namespace
{

class network_cards : public testing::Environment
{
    void SetUp() override
    {
        if (!ucxl::test::ucx_has_network_cards()) {
            GTEST_SKIP() << "this UCX has no transports for network cards";
        }
    }
};

} // namespace

int main(int argc, char** argv)
{
    if (argc > 1 && std::string_view(argv[1]) == "--peer") {
        return ucxl::two_process::run_peer(argc, argv);
    }
    if (argc > 1 && std::string_view(argv[1]) == "--hold-devices") {
        return ucxl::two_process::hold_devices();
    }
    // All peers of all tests share one device, so the test program itself runs below softhca-run.
    ucxl::test::use_shared_software_device(SOFTHCA_RUN, argv);
    testing::AddGlobalTestEnvironment(new network_cards);
    return ucxl::test::run_tests(argc, argv);
}

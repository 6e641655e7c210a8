#include <cstdlib>

#include "pool_life.h"
#include "support/lives.h"
#include "support/run_tests.h"
#include "support/software_device.h"

int main(int argc, char** argv)
{
    ucxl::test::use_software_device(argv, SOFTHCA_LIBRARY);
    if (std::getenv("UCXL_CHILD") != nullptr) {
        return ucxl::test::live_with_each(ucxl::test::pool_life, argc - 1, argv + 1);
    }
    return ucxl::test::run_tests(argc, argv);
}

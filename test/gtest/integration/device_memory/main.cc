#include <cstdlib>
#include <string_view>

#include "pool_life.h"
#include "queue_life.h"
#include "support/lives.h"
#include "support/run_tests.h"
#include "support/software_device.h"

int main(int argc, char** argv)
{
    ucxl::test::use_software_device(argv, SOFTHCA_LIBRARY);
    if (const char* const role = std::getenv("UCXL_CHILD")) {
        const bool is_queue = std::string_view(role) == "queue_lives";
        return ucxl::test::live_with_each(is_queue ? ucxl::test::queue_life : ucxl::test::pool_life, argc - 1,
                                          argv + 1);
    }
    return ucxl::test::run_tests(argc, argv);
}

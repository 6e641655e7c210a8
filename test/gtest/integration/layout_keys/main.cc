#include <cstdlib>
#include <cstring>

#include "dead_device.h"
#include "found_by_self_test.h"
#include "key_life.h"
#include "order_bug.h"
#include "shared_key.h"
#include "support/lives.h"
#include "support/run_tests.h"
#include "support/software_device.h"

namespace
{

// What a child does instead of tests.
struct role {
    const char* name;
    int (*play)();
};

constexpr role roles[] = {
    {"dead_device", ucxl::test::dead_device}, {"found_by_self_test", ucxl::test::found_by_self_test},
    {"key_owner", ucxl::test::key_owner},     {"key_user", ucxl::test::key_user},
    {"order_bug", ucxl::test::order_bug},
};

} // namespace

int main(int argc, char** argv)
{
    ucxl::test::use_software_device(argv, SOFTHCA_LIBRARY);
    if (const char* const wanted = std::getenv("UCXL_CHILD")) {
        for (const role& one : roles) {
            if (std::strcmp(one.name, wanted) == 0) {
                return one.play();
            }
        }
        return std::strcmp("key_lives", wanted) == 0
                   ? ucxl::test::live_with_each(ucxl::test::key_life, argc - 1, argv + 1)
                   : 2;
    }
    return ucxl::test::run_tests(argc, argv);
}

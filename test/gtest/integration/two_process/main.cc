// main() of the test program, and of the peers it starts: the parent never initialises UCX, the peers never GoogleTest.
#include "scenario.h"

#include "support/run_tests.h"

#include <string_view>

int main(int argc, char** argv)
{
    if (argc > 1 && std::string_view(argv[1]) == "--peer") {
        return ucxl::two_process::run_peer(argc, argv);
    }
    return ucxl::test::run_tests(argc, argv);
}

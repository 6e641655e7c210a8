// main() of the same tests on a device: the software device, unless UCXL_TEST_DEVICE names another one.
#include "scenario.h"

#include "support/run_tests.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace
{

// All peers of all tests share one device, so the test program itself runs below softhca-run.
void use_software_device(int argc, char** argv)
{
    std::vector<const char*> command = {SOFTHCA_RUN, "--", "/proc/self/exe"};
    char program[4096];
    const auto length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length > 0) {
        program[length] = '\0';
        command.back()  = program;
    }
    command.insert(command.end(), argv + 1, argv + argc);
    command.push_back(nullptr);
    setenv("UCXL_TEST_DEVICE", "mlx5_0", 1);
    setenv("UCXL_SOFTWARE_DEVICE", "1", 1);
    execv(SOFTHCA_RUN, const_cast<char* const*>(command.data()));
    std::perror("running this program on the software device");
    std::exit(1);
}

} // namespace

int main(int argc, char** argv)
{
    if (argc > 1 && std::string_view(argv[1]) == "--peer") {
        return ucxl::two_process::run_peer(argc, argv);
    }
    if (std::getenv("UCXL_TEST_DEVICE") == nullptr) {
        use_software_device(argc, argv);
    }
    return ucxl::test::run_tests(argc, argv);
}

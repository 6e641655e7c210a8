// Programs that need an mlx5 device run on the software device unless UCXL_TEST_DEVICE names another.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <unistd.h>

namespace ucxl::test
{

// Call it first in main(): runs the program again with the software device, if needed. Otherwise returns.
inline void use_software_device(char** argv, const char* library)
{
    if (std::getenv("UCXL_TEST_DEVICE") != nullptr) {
        return;
    }
    setenv("UCXL_TEST_DEVICE", "mlx5_0", 1);
    setenv("LD_PRELOAD", library, 1);
    execv("/proc/self/exe", argv);
    std::perror("running this program on the software device");
    std::exit(1);
}

} // namespace ucxl::test

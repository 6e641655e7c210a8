// Programs that need an mlx5 device run on the software device unless UCXL_TEST_DEVICE names another.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

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

// Becomes this program again, below softhca-run with these options.
[[noreturn]] inline void run_below(const char* softhca_run, const std::vector<const char*>& options, char** argv)
{
    char program[4096];
    const auto length = readlink("/proc/self/exe", program, sizeof(program));
    const std::string path(program, length > 0 ? static_cast<std::size_t>(length) : 0);
    std::vector<const char*> command{softhca_run};
    command.insert(command.end(), options.begin(), options.end());
    command.insert(command.end(), {"--", path.c_str()});
    while (*++argv != nullptr) {
        command.push_back(*argv);
    }
    command.push_back(nullptr);
    execv(softhca_run, const_cast<char* const*>(command.data()));
    std::perror("running this program on the software device");
    std::exit(1);
}

// As use_software_device(), for programs whose processes share one device.
inline void use_shared_software_device(const char* softhca_run, char** argv)
{
    if (std::getenv("UCXL_TEST_DEVICE") != nullptr) {
        return;
    }
    setenv("UCXL_TEST_DEVICE", "mlx5_0", 1);
    setenv("UCXL_SOFTWARE_DEVICE", "1", 1);
    run_below(softhca_run, {}, argv);
}

} // namespace ucxl::test

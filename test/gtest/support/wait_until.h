// Waiting for what no event announces. Whatever has one (a process, a pipe, a lock, an atomic) is waited for by it.
//
// Example: EXPECT_TRUE(wait_until([&] { return is_port_open(port); }));
#pragma once

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <sys/types.h>

namespace ucxl::test
{

// Asks again every millisecond; false when it did not come true in time.
template <typename Fn>
bool wait_until(Fn&& holds, std::chrono::seconds limit = std::chrono::seconds(30))
{
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
        if (std::chrono::steady_clock::now() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

// Whether a thread of this process waits in the kernel for something, or has ended.
inline bool is_asleep(pid_t thread)
{
    std::string stat;
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread) + "/stat"), stat);
    const auto name_end = stat.rfind(')');
    return name_end == std::string::npos || stat.substr(name_end + 2, 1) == "S";
}

// Whether somebody on this host listens on the TCP port; asking does not disturb them.
inline bool is_port_open(int port)
{
    char wanted[8];
    std::snprintf(wanted, sizeof(wanted), ":%04X", static_cast<unsigned>(port));
    for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
        std::ifstream sockets(table);
        for (std::string line, number, local, remote, state; std::getline(sockets, line);) {
            std::istringstream(line) >> number >> local >> remote >> state;
            if (local.ends_with(wanted) && state == "0A") {
                return true;
            }
        }
    }
    return false;
}

// What a thread or a process has used, by its clock (pthread_getcpuclockid, clock_getcpuclockid).
inline double processor_seconds(clockid_t clock)
{
    timespec used{};
    clock_gettime(clock, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

} // namespace ucxl::test

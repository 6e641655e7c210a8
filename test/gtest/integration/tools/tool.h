// Tools as real processes.
//
//     process server(program_path("ucx_layout_perftest"), {"-p", "12345"});
//     const outcome client = run_tool("ucx_layout_perftest", {"localhost", "-p", "12345", "-t", "tag_lat", "-s", "8"});
//     EXPECT_EQ(0, server.wait().status);
#pragma once

#include "support/process.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <random>
#include <string>
#include <system_error>

namespace ucxl::test
{

using outcome = ended_process;

inline outcome run_tool(const std::string& name, const std::vector<std::string>& arguments,
                        const environment& extra = {})
{
    return process(program_path(name), arguments, {.variables = extra}).wait();
}

// A TCP port nobody listens on now, and none of those that the system gives to clients (ip_local_port_range, from 32768
// on by default): one of them may belong to a connection of another test a moment later.
inline std::string free_port()
{
    std::random_device random;
    std::uniform_int_distribution<std::uint16_t> choose(10000, 32767);
    for (int attempts = 0;; attempts++) {
        const std::uint16_t port = choose(random);
        const int fd             = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port   = htons(port);
        const int status   = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address));
        const int error    = errno;
        close(fd);
        if (status == 0) {
            return std::to_string(port);
        }
        if (error != EADDRINUSE || attempts == 100) {
            throw std::system_error(error, std::generic_category(), "bind");
        }
    }
}

} // namespace ucxl::test

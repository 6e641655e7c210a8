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
#include <system_error>

namespace ucxl::test
{

using outcome = ended_process;

inline outcome run_tool(const std::string& name, const std::vector<std::string>& arguments,
                        const environment& extra = {})
{
    return process(program_path(name), arguments, {.variables = extra}).wait();
}

// A TCP port nobody listens on now.
inline std::string free_port()
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    socklen_t length   = sizeof(address);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) {
        throw std::system_error(errno, std::generic_category(), "bind");
    }
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
    close(fd);
    return std::to_string(ntohs(address.sin_port));
}

} // namespace ucxl::test

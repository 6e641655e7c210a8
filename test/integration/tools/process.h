// Runs a tool as a real process and keeps what it printed.
//
//     process server("ucx_layout_perftest", {"-p", "12345"});
//     outcome client = run_tool("ucx_layout_perftest", {"localhost", "-p", "12345", "-t", "tag_lat", "-s", "8"});
//     EXPECT_EQ(0, server.wait().status);
//
// A process that does not end in time is killed, with its children, and that is a failure of the test.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <sys/types.h>
#include <vector>

namespace ucxl::test
{

struct outcome {
    int status = -1; // exit status; 128 + N when signal N ended it
    std::string out;
    std::string err;
};

class process
{
public:
    using environment = std::map<std::string, std::string>;

    // name: of a tool built beside this test program.
    process(const std::string& name, const std::vector<std::string>& arguments, const environment& extra = {});
    ~process();
    process(const process&)            = delete;
    process& operator=(const process&) = delete;

    int pid() const { return _pid; }
    outcome wait(std::chrono::seconds limit = std::chrono::seconds(60));
    void kill(int signal);
    // What it has printed so far.
    std::string out() const;
    bool has_ended();

private:
    int _pid    = -1;
    int _out    = -1;
    int _err    = -1;
    bool _ended = false;
    int _status = -1;
};

outcome run_tool(const std::string& name, const std::vector<std::string>& arguments,
                 const process::environment& extra = {});

// A TCP port nobody listens on now.
std::string free_port();

} // namespace ucxl::test

// A program that runs as a process of its own. What it prints is kept, and it never outlives the object.
//
//     process server(program_path("ucx_layout_perftest"), {"-p", "12345"});
//     server.wait_for_output("connection");
//     EXPECT_EQ(server.wait().status, 0);
//
// For a copy of this process, which executes nothing, there is forked_process.h.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ucxl::test
{

using environment = std::vector<std::pair<std::string, std::string>>;

struct process_options {
    environment variables{};          // in addition to those of this process, or instead
    bool without_ucx_options = false; // none of the UCX_ variables of this process but UCX_MODULES
    bool has_one_stream      = false; // what it prints as errors is in its output, in order
    std::vector<int> descriptors{};   // above those the program sees them at: first_descriptor and the next ones
};

struct ended_process {
    int status     = -1; // exit status; 128 + N when signal N ended it
    bool timed_out = false;
    double ran_s   = 0; // processor time
    std::string out{};
    std::string err{};

    std::string output() const { return out + err; }
};

class process
{
public:
    static constexpr int first_descriptor = 20;

    // Leads a process group. Throws std::system_error.
    explicit process(const std::string& path, const std::vector<std::string>& arguments = {},
                     const process_options& options = {});
    ~process(); // kills its group
    process(const process&)            = delete;
    process& operator=(const process&) = delete;

    pid_t pid() const { return _pid; }
    void kill(int signal); // its group
    bool has_ended();
    // What it has printed so far.
    const std::string& out();
    // Whether its output has the text, which may take a while to come.
    bool wait_for_output(const std::string& text, std::chrono::seconds limit = std::chrono::seconds(30));
    // One that does not end in time is killed with its group, and fails the test. Limits are longer under a sanitizer.
    ended_process wait(std::chrono::seconds limit = std::chrono::seconds(60));

private:
    friend std::vector<ended_process> wait_for_all(std::span<process* const> all, std::chrono::seconds limit);

    using time = std::chrono::steady_clock::time_point;
    // Until it prints something, or ends, or it is too late.
    static void wait_for_event(std::span<process* const> all, time deadline);
    void read_all();
    void reap();
    bool is_running() const { return _descriptor >= 0; }

    pid_t _pid      = -1;
    int _descriptor = -1;              // readable when it has ended
    std::array<int, 2> _pipes{-1, -1}; // its output and error output
    ended_process _ended;
};

// As wait(), for several: the others get ten seconds more after one of them failed.
std::vector<ended_process> wait_for_all(std::span<process* const> all, std::chrono::seconds limit);

// This program (for an empty name), or another one of the same build folder.
std::string program_path(const std::string& name = {});

} // namespace ucxl::test

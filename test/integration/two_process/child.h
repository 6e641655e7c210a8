// A process started by the parent, with its output captured. It never outlives the object.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace ucxl::two_process
{

// Every peer finds its ends of the socket pairs at these descriptors, one for each of its threads.
inline constexpr int first_channel_fd = 20;
inline constexpr int num_channels     = 2;

class channel_pairs
{
public:
    channel_pairs();
    ~channel_pairs();
    channel_pairs(const channel_pairs&)            = delete;
    channel_pairs& operator=(const channel_pairs&) = delete;

    std::array<int, num_channels> ends(int role) const;

private:
    int _ends[num_channels][2];
};

struct ended_child {
    int exit_status = 0;
    int signal      = 0;
    bool timed_out  = false;
    double ran_s    = 0; // processor time
    std::string output;
};

class child
{
public:
    // The environment is the parent's without any UCX_ variable, plus `variables`.
    child(const std::string& path, const std::vector<std::string>& arguments,
          const std::vector<std::pair<std::string, std::string>>& variables, std::array<int, num_channels> channels);
    ~child();
    child(const child&)            = delete;
    child& operator=(const child&) = delete;

private:
    friend std::vector<ended_child> wait_for(const std::vector<std::unique_ptr<child>>& children, unsigned deadline_s);

    void read_output();
    void reap();

    pid_t _pid  = -1;
    int _output = -1;
    ended_child _ended;
};

// Waits until all have ended, and kills those that have not at the deadline, or ten seconds after another one failed.
std::vector<ended_child> wait_for(const std::vector<std::unique_ptr<child>>& children, unsigned deadline_s);

// This program (for an empty name), or another one of the same build folder.
std::string program_path(const std::string& name);

} // namespace ucxl::two_process

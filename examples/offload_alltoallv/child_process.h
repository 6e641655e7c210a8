// A process of the exchange, as the launcher sees it.
//
// Invariant: it ends with the launcher, however that ends, also if it is stopped.
#pragma once

#include "control.h"

#include <chrono>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace examples
{

// A variable that the process gets unless it is set already.
using default_variable = std::pair<std::string, std::string>;

class child_process
{
public:
    // name: for texts, "host 2".
    static child_process start(std::string name, const std::vector<std::string>& command,
                               const std::vector<default_variable>& variables);
    ~child_process();
    child_process(child_process&& other) noexcept;
    child_process& operator=(const child_process&) = delete;

    const std::string& name() const { return _name; }
    pid_t pid() const { return _pid; }
    control& messages() { return _messages; }

    // Returns when all its threads are stopped.
    void stop();
    void go_on() const;
    // The letter of /proc/PID/stat: T if it is stopped.
    char state() const;
    // Of all its threads, since its start.
    std::chrono::nanoseconds processor_time() const;
    // Of a stopped process. The kernel needs a moment for the last instructions of its threads.
    std::chrono::nanoseconds settled_processor_time() const;
    static constexpr const char* good_end = "ended with status 0";
    // Waits for its end and says how it ended, as above. Kills it if it does not end soon.
    std::string how_it_ended();

private:
    child_process(std::string name, pid_t pid, control messages)
        : _name(std::move(name)), _pid(pid), _messages(std::move(messages))
    {
    }

    std::string _name;
    pid_t _pid;
    control _messages;
};

} // namespace examples

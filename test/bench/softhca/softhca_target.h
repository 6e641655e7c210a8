// The other process of a measurement: it has a buffer that is written and read, and is kept in one of several states
// meanwhile.
#pragma once

#include "support/verbs_endpoint.h"

#include <atomic>
#include <memory>
#include <sys/types.h>

namespace ucxl::bench
{

enum class target_state : std::uint8_t {
    asleep,    // in a system call that waits
    stopped,   // by SIGSTOP
    computing, // never calls a library
    polling,   // its completion queue
    writing,   // large messages into the buffer of this process
};

const char* name_of(target_state state);

class target_process
{
public:
    // Before this process touches the device. Anything that fails ends the program with a message.
    explicit target_process(std::size_t buffer_bytes);
    ~target_process();
    target_process(const target_process&)            = delete;
    target_process& operator=(const target_process&) = delete;

    // Connects to an endpoint of this process, which connects to it.
    test::address connect(const test::address& own);

    // When this returns the target is in that state.
    void enter(target_state state);

    pid_t process() const { return _process; }

private:
    struct shared_word;

    [[noreturn]] void serve(std::size_t buffer_bytes);
    void stay(test::endpoint& here, target_state state);

    shared_word* _word;
    int _to_target[2]   = {};
    int _from_target[2] = {};
    pid_t _process      = 0;
    bool _stopped       = false;
};

} // namespace ucxl::bench

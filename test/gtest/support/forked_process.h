// A copy of this process, with the memory and threads' leftovers that a fork gives it: for what only processes show. It
// runs until it is told to end or is killed. For another program there is process.h.
#pragma once

#include <sys/types.h>

#include <functional>

#include <gtest/gtest.h>

namespace ucxl::test
{

class forked_process
{
public:
    // Runs `body` in the child, which then ends with status 0, or 1 if an expectation failed in it. Returns when the
    // child called ready() or ended.
    explicit forked_process(const std::function<void(forked_process&)>& body);
    ~forked_process(); // kills it
    forked_process(const forked_process&)            = delete;
    forked_process& operator=(const forked_process&) = delete;

    pid_t id() const { return _id; }

    // In the child: the parent goes on; and the child sleeps until it is killed or told to go on.
    void ready();
    void wait();
    // In the parent.
    void go_on();
    void kill(); // SIGKILL, and waits for it
    int join();  // exit status; 128 + signal

private:
    pid_t _id    = 0;
    int _up[2]   = {-1, -1};
    int _down[2] = {-1, -1};
};

// Whether `body` returns true in a child, within 20 s.
testing::AssertionResult holds_in_child(const std::function<bool()>& body);

// In a child: from here on the limits of the system are for this process, too.
void give_up_privileges();

// Memory that forked processes share, zeroed; there until the end of the test program.
void* shared_pages(std::size_t bytes);

template <typename Object>
Object& shared()
{
    return *new (shared_pages(sizeof(Object))) Object{};
}

} // namespace ucxl::test

// A child of the test with its own memory that runs until it is told to end or killed: for tests that need real
// processes.
#pragma once

#include <sys/types.h>

#include <functional>

namespace ucxl::softhca::test
{

class real_process
{
public:
    // Runs `body` in the child, which then ends with status 0. Returns when the child has called ready() or ended.
    explicit real_process(const std::function<void(real_process&)>& body);
    ~real_process(); // kills it
    real_process(const real_process&)            = delete;
    real_process& operator=(const real_process&) = delete;

    pid_t id() const { return _id; }

    // In the child: lets the parent continue, and sleeps until killed or told to continue.
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

// In a child: from now on the limits of the system apply to this process, too.
void give_up_privileges();

// Zeroed memory shared with children; lives until the end of the test program.
void* shared_pages(std::size_t bytes);

template <typename Object>
Object& shared()
{
    return *new (shared_pages(sizeof(Object))) Object{};
}

} // namespace ucxl::softhca::test

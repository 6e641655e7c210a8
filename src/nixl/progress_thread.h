// The thread of a worker: makes it progress while the program does something else.
//
// It looks all the time while something happens, and then less and less often. Waiting for UCX's descriptor instead
// would leave out transports that cannot wake, among them that for shared memory.
#pragma once

#include "worker.h"

#include <atomic>
#include <thread>

namespace ucxl::nixl
{

class progress_thread
{
public:
    explicit progress_thread(worker& served) : _worker(served), _thread([this] { run(); }) {}
    ~progress_thread();
    progress_thread(const progress_thread&)            = delete;
    progress_thread& operator=(const progress_thread&) = delete;

private:
    void run();
    bool make_progress() noexcept; // whether something happened

    worker& _worker;
    std::atomic<bool> _is_over{false};
    std::thread _thread;
};

} // namespace ucxl::nixl

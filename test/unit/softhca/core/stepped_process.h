// A forked child that its parent runs instruction by instruction while it has the lock of the test machine, and kills.
// The memory of the machine and of its processes is shared with the child, so the parent sees what it does.
//
//     if (auto child = stepped_process::start(process, [&] { ... })) {
//         while (!seen() && child->step()) {}
//         child->kill();
//     }
#pragma once

#include <functional>
#include <optional>

#include <sys/types.h>

#include "test_host.h"

namespace ucxl::softhca::test
{

class stepped_process
{
public:
    // Nothing where processes cannot be traced. The child stands where it got the lock.
    static std::optional<stepped_process> start(test_process& process, const std::function<void()>& what);

    stepped_process(stepped_process&& from) noexcept;
    stepped_process& operator=(stepped_process&&) = delete;
    ~stepped_process();

    // False when the lock was given back.
    bool step();

    void kill();

private:
    stepped_process(test_process& process, pid_t child) : _process(process), _child(child) {}

    test_process& _process;
    pid_t _child;
};

} // namespace ucxl::softhca::test

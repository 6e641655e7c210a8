// A forked child that its parent executes instruction by instruction while the child has the lock of the test machine,
// and kills. The child shares the memory of the machine and its processes, so the parent sees its writes.
//
//     if (auto child = stepped_process::start(process, [&] { ... })) {
//         while (!seen() && child->step()) {}
//         child->kill();
//     }
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <sys/types.h>

#include "test_host.h"

namespace ucxl::softhca::test
{

class stepped_process
{
public:
    // Nothing when processes cannot be traced. The child stops where it got the lock. Throws std::runtime_error when it
    // ended before.
    static std::optional<stepped_process> start(test_process& process, const std::function<void()>& work);

    stepped_process(stepped_process&& from) noexcept;
    stepped_process& operator=(stepped_process&&) = delete;
    ~stepped_process();

    // False when the lock was released.
    bool step();

    // Where the instruction is that comes next, the same in each child of this process; 0 where that is not known.
    std::uintptr_t place() const;

    // Goes on until the instruction there comes next, without a step for each before it. False where that cannot be
    // done: then nothing was executed.
    bool run_to(std::uintptr_t place);

    void kill();

private:
    stepped_process(test_process& process, pid_t child) : _process(process), _child(child) {}

    test_process& _process;
    pid_t _child;
};

} // namespace ucxl::softhca::test

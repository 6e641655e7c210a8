#include "test_host.h"

#include <algorithm>

namespace ucxl::softhca::test
{

void test_machine::advance(std::uint64_t time_ns_more)
{
    const std::uint64_t end = time_ns + time_ns_more;
    for (;;) {
        const auto next = std::ranges::min_element(_processes, {}, [](const test_process& process) {
            return process.is_alive() ? process.woken_at_ns : UINT64_MAX;
        });
        if (next == _processes.end() || !next->is_alive() || next->woken_at_ns > end) {
            break;
        }
        time_ns           = std::max(time_ns, next->woken_at_ns);
        next->woken_at_ns = UINT64_MAX;
        next->device().progress();
    }
    time_ns = end;
}

void test_machine::settle()
{
    for (bool again = true; again;) {
        again = false;
        for (test_process& process : _processes) {
            again = (process.is_alive() && process.device().progress()) || again;
        }
    }
}

} // namespace ucxl::softhca::test

// Processes of the test that kills hosts and DPUs at any moment (test_export_kills.cc): one that survives all of its
// partners, and the partners, one after the other. A host exports fresh memory in each round, the DPU imports it, reads
// and writes it, and the host unmaps it.
#pragma once

#include <cstdint>
#include <string_view>

namespace ucxl::test
{

struct sharing_process {
    std::string_view role; // "host", "dpu"
    unsigned num_killed;   // partners before the last one; 0 for a partner
    unsigned rounds;       // with a partner that is not killed
    std::uint64_t seed;
};

// main() of such a process. The survivor has a channel (two_process/channel.h) to each partner; a partner has one.
// Prints "sharing" when it begins, and what took longest. Says what is wrong, and does not return.
[[noreturn]] void share(const sharing_process& process);

} // namespace ucxl::test

// Interprets bytes as the actions of a few processes on a fabric: valid commands, valid ones with some bytes changed,
// raw mailboxes, bytes in queues, doorbells, processes that exit or die. Shared by the fuzz target and tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ucxl::softhca::test
{

struct script_result {
    std::string wrong; // the violated invariants; empty when there are none
    unsigned commands  = 0;
    unsigned succeeded = 0;
};

script_result run_command_script(std::span<const std::byte> script);

} // namespace ucxl::softhca::test

// Any bytes as what a few processes do with a fabric: good commands, good ones with some bytes changed, raw mailboxes,
// bytes in queues, doorbells, processes that end well or badly. The same for the fuzz target and for tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ucxl::softhca::test
{

struct script_result {
    std::string wrong; // what does not hold afterwards; empty when all does
    unsigned commands  = 0;
    unsigned succeeded = 0;
};

script_result run_command_script(std::span<const std::byte> script);

} // namespace ucxl::softhca::test

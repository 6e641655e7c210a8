// Any bytes as what three processes do with a software device (test/gtest/softhca/core/command_script.h): every command
// is answered, nothing is read or written outside the processes' memory, and the records stay in order.
#include "fuzz_target.h"

#include "gtest/softhca/core/command_script.h"

#include <span>

using namespace ucxl;
using fuzz::require;

UCXL_FUZZ_TARGET(softhca_command)
{
    const auto result = softhca::test::run_command_script(std::as_bytes(std::span(data, size)));
    require(result.wrong.empty(), result.wrong);
    return 0;
}

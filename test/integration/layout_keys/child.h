// This test program started once more, with other variables in its environment: faults of the software device and
// options of the library are read when a process begins.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace ucxl::test
{

using environment_changes = std::vector<std::pair<std::string, std::string>>;

struct child_result {
    int status; // that it exited with; above 255 if a signal ended it
    std::string output;
};

// What the child does instead of running tests is named by UCXL_CHILD, see main.cc.
child_result run_child(const environment_changes& environment, const std::vector<std::string>& arguments = {});

} // namespace ucxl::test

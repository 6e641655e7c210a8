// What another program prints, for a question that it answers at once.
//
// Example: const auto text = output_of({"mpirun", "--version"});
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ucxl::mpi_run
{

// Its standard output, whatever its status. Its standard error is thrown away and its standard input is empty. None if
// it cannot be started, or does not end within ten seconds: it is then killed.
std::optional<std::string> output_of(const std::vector<std::string>& command);

} // namespace ucxl::mpi_run

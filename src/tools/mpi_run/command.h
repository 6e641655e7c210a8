// The launcher's command line, with what its processes need and the launcher itself does not.
#pragma once

#include "which_mpi.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ucxl::mpi_run
{

using variables = std::vector<std::pair<std::string, std::string>>;

// `command` with options of the launcher that set the variables in the processes it starts.
std::vector<std::string> with_variables(const std::vector<std::string>& command, launcher_kind kind,
                                        const variables& set);
// The option of the launcher, among the first `end` words of the command, that sets LD_PRELOAD itself.
std::optional<std::string> option_with_preload(const std::vector<std::string>& command, std::size_t end);
// What the command line of Open MPI's launcher sets its parameter pml to.
std::optional<std::string> pml_in(const std::vector<std::string>& command, std::size_t end);
// Whether Open MPI may choose UCX if its parameter pml has this value.
bool allows_ucx(std::string_view pml);
// For a shell.
std::string quoted(const std::vector<std::string>& command);

} // namespace ucxl::mpi_run

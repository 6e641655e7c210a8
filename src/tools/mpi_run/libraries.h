// The libraries that are preloaded, where they were installed.
#pragma once

#include "which_mpi.h"

#include <string>

namespace ucxl::mpi_run
{

inline constexpr const char* heap_library = "libucx_layout_heap.so";

const char* library_for(handles uses);
// Its path: beside this program in a build tree, in the folder of libraries that belongs to it, or in the one that was
// configured. Empty if it is in none of them.
std::string path_of_library(const std::string& name);
// The libraries that LD_PRELOAD has already, then those of `more` that it has not.
std::string preload_with(const std::string& present, const std::vector<std::string>& more);

} // namespace ucxl::mpi_run

// The UCX libraries of this process. Their file names may be mangled (Python wheels), they may be loaded in private
// scopes, and there may be more than one UCX, so they are found by what they export.
//
// Example: auto library = UCXL_TRY(choose_library(caller));
#pragma once

#include "sys/error.h"

#include <string>
#include <vector>

namespace ucxl::abi
{

struct ucx_library {
    void* handle;      // for dlsym, which also finds the symbols of libuct and libucs that this libucp uses
    std::string file;  // as the loader names it
    const void* start; // where it is loaded
};

// The libraries that export `symbol` themselves and whose file name contains `part`, and the program if it does.
std::vector<ucx_library> libraries_with(const char* symbol, const char* part);

// Every libucp of this process.
std::vector<ucx_library> loaded_libucps();

// The libucp of this process: the only one, or the one that `caller` (an address in its code, or null) reaches first,
// or the one that the program itself uses.
// Errors: no_device if no libucp is loaded, unsupported if there are several and none of them stands out. The message
// names the files.
result<ucx_library> choose_library(const void* caller = nullptr);

// The file of the libuct that is loaded without any libucp, or an empty string.
std::string libuct_alone();

// The function `name` that the code at `caller` would call if the object that holds `own` did not exist. Null if there
// is none.
void* next_function(const char* name, const void* own, const void* caller);

} // namespace ucxl::abi

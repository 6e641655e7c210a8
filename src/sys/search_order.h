// What the dynamic linker finds, for a library that stands before functions of others.
#pragma once

#include <string>
#include <vector>

namespace ucxl
{

// The files of all objects of this process, as the loader names them; that of the program itself is an empty string.
std::vector<std::string> loaded_files();

// The file of the object that holds the address, or an empty string; also for the program itself.
std::string file_of(const void* address);

// Where the object that holds the address is loaded. Null if none does.
const void* start_of(const void* address);

// What dlsym() finds for the object that holds `caller`: in itself and in what it needs, or, for the program, in the
// global scope. Null if there is nothing.
void* reached_from(const void* caller, const char* symbol);

// The function that the code at `caller` would call if the object that holds `own` did not exist: the next one of the
// global scope, else one that only the caller reaches, because it was loaded with RTLD_LOCAL. Null if there is none.
void* function_behind(const void* own, const char* symbol, const void* caller);

} // namespace ucxl

// Binds the functions of this library to the MPI that the program calls (mpi_functions.h).
//
// MPI is looked for when the program first calls it, as the dynamic linker would for that caller if this library did
// not exist. Until the library is active, the program's calls are MPI's own.
#pragma once

#include "mpi_functions.h"

namespace ucxl::mpi
{

// Whether the MPI below has the function: an older one may not, and then nothing of the program calls it.
bool has_function(const char* name) noexcept;
// A symbol of MPI that is no function of the standard. Null if there is none.
void* symbol_of_mpi(const char* name) noexcept;
// The file of MPI.
const char* file_of_mpi() noexcept;

// From now on programs call own_MPI_...(), but not where another tool stands before this library and hides the end of
// what such a call starts: then MPI does it.
void take_calls() noexcept;
// Whether the program's calls come to own_MPI_...() since take_calls(), as far as can be told.
bool takes_call(const char* name) noexcept;
// From now on programs call MPI.
void leave_calls() noexcept;

// Tools that stand before this library, and the bindings for Fortran, call MPI by its profiling names. From now on the
// object that is loaded at `start` calls this library instead of `name`, a profiling name.
void note_redirected(const char* name, const void* start) noexcept;
// Whether operations end in the function of this profiling name.
bool ends_operations(const char* name) noexcept;
// The function that programs call by a profiling name's other name. Null if this library does not stand before it.
void* function_for_profiling_name(const char* name) noexcept;

} // namespace ucxl::mpi

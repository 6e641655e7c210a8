// Some call MPI's functions by their profiling names, so no library can stand before them by names alone: Open MPI's
// Fortran bindings, some of MPICH's, and tools that stand before this library, in the program or preloaded. So their
// slots are changed to the functions of this library.
#include "call_table.h"
#include "function_slots.h"

#include "sys/search_order.h"

#include <cstdint>
#include <link.h>
#include <string_view>

#include <dlfcn.h>

namespace ucxl::mpi
{

namespace
{

struct visited_object {
    void* handle; // for dlsym
    bool is_for_fortran;
};

// Whether the object itself defines the function that stands before this profiling name, as a tool does.
bool stands_before(void* object, const void* start, const char* profiling_name)
{
    return object != nullptr && start_of(dlsym(object, profiling_name + 1)) == start;
}

// Of a tool the names that it stands before, and of everybody the calls in which operations end: those that this
// library began have to end here. Else a program may use a profiling name to call MPI itself.
bool is_redirected(const visited_object& object, const void* start, const char* profiling_name)
{
    return object.is_for_fortran || ends_operations(profiling_name) ||
           stands_before(object.handle, start, profiling_name);
}

void change_slot(const char* name, std::uintptr_t slot, void* arg)
{
    void* const function = function_for_profiling_name(name);
    if (function == nullptr) {
        return;
    }
    const void* const start = start_of(reinterpret_cast<const void*>(slot));
    if (is_redirected(*static_cast<const visited_object*>(arg), start, name) && write_slot(slot, function)) {
        note_redirected(name, start);
    }
}

bool is_for_fortran(std::string_view path)
{
    const std::string_view name = path.substr(path.find_last_of('/') + 1);
    return name.starts_with("libmpi_mpifh") || name.starts_with("libmpi_usempi") || name.starts_with("libmpichfort");
}

// The objects come in the order in which functions are looked for.
int look_at(dl_phdr_info* object, std::size_t /*size*/, void* to_fill)
{
    bool& is_behind = *static_cast<bool*>(to_fill);
    const std::string_view path(object->dlpi_name == nullptr ? "" : object->dlpi_name);
    is_behind = is_behind || path == file_of(reinterpret_cast<const void*>(&look_at));
    if (is_behind && !is_for_fortran(path)) {
        return 0;
    }
    visited_object visited{dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD), is_for_fortran(path)};
    visit_slots(*object, change_slot, &visited);
    return 0;
}

// When the process starts: MPI_INIT of Fortran is one of these functions. Libraries that the process needs are there.
[[gnu::constructor]] void stand_behind_profiling_names()
{
    bool is_behind = false;
    dl_iterate_phdr(look_at, &is_behind);
}

} // namespace

} // namespace ucxl::mpi

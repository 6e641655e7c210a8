// The slots of an object of this process, where it has the addresses of functions of others that it calls. They are
// changed where no library can stand before a function by its name alone, as UCX does to hear of memory that is
// released (ucm/util/reloc.c).
#pragma once

#include <cstdint>
#include <link.h>

namespace ucxl::mpi
{

// The name of the function, and where its address is.
using slot_visitor = void (*)(const char* name, std::uintptr_t slot, void* arg);

void visit_slots(const dl_phdr_info& object, slot_visitor visit, void* arg);

// False if the page cannot be written. After a slot was resolved, the linker may have made it read-only.
bool write_slot(std::uintptr_t slot, void* function);

} // namespace ucxl::mpi

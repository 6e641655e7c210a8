// Some call MPI's functions by their profiling names, so no library can stand before them by names alone: Open MPI's
// Fortran bindings, some of MPICH's, and tools that stand before this library, in the program or preloaded. Here the
// entries of their tables of functions are changed to the functions of this library, as UCX does to hear of memory that
// is released (ucm/util/reloc.c).
#include "call_table.h"

#include "sys/search_order.h"

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <link.h>
#include <string>
#include <string_view>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ucxl::mpi
{

namespace
{

#if defined(__x86_64__)
constexpr std::uint32_t slot_of_function = R_X86_64_JUMP_SLOT, slot_of_address = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr std::uint32_t slot_of_function = R_AARCH64_JUMP_SLOT, slot_of_address = R_AARCH64_GLOB_DAT;
#else
#error "the relocations of this processor are not known"
#endif

bool write_slot(std::uintptr_t slot, void* function)
{
    const auto page  = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto start = slot & ~(page - 1);
    // A slot does not cross pages. After it was resolved, the linker may have made it read-only.
    if (mprotect(reinterpret_cast<void*>(start), page, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    std::memcpy(reinterpret_cast<void*>(slot), static_cast<const void*>(&function), sizeof(function));
    return true;
}

struct object_tables {
    void* handle                 = nullptr; // for dlsym
    bool is_for_fortran          = false;
    const ElfW(Sym) * symbols    = nullptr;
    const char* names            = nullptr;
    const ElfW(Rela) * functions = nullptr;
    std::size_t num_functions    = 0;
    const ElfW(Rela) * addresses = nullptr;
    std::size_t num_addresses    = 0;
};

object_tables tables_of(const ElfW(Dyn) * entry)
{
    object_tables found;
    for (; entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            found.symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
            break;
        case DT_STRTAB:
            found.names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
            break;
        case DT_JMPREL:
            found.functions = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            found.num_functions = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELA:
            found.addresses = reinterpret_cast<const ElfW(Rela)*>(entry->d_un.d_ptr);
            break;
        case DT_RELASZ:
            found.num_addresses = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        default:
            break;
        }
    }
    return found;
}

// Whether the object itself defines the function that stands before this profiling name, as a tool does.
bool stands_before(void* object, const void* start, const char* profiling_name)
{
    return object != nullptr && start_of(dlsym(object, profiling_name + 1)) == start;
}

// Of a tool the names that it stands before, and of everybody the calls in which operations end: those that this
// library began have to end here. Else a program may use a profiling name to call MPI itself.
bool is_redirected(const object_tables& object, const void* start, const char* profiling_name)
{
    return object.is_for_fortran || ends_operations(profiling_name) ||
           stands_before(object.handle, start, profiling_name);
}

void change_slots(const object_tables& object, const ElfW(Rela) * first, std::size_t number, std::uintptr_t base)
{
    for (std::size_t i = 0; i < number; ++i) {
        const ElfW(Rela)& each = first[i];
        const auto kind        = static_cast<std::uint32_t>(ELF64_R_TYPE(each.r_info));
        if (kind != slot_of_function && kind != slot_of_address) {
            continue;
        }
        const char* const name = object.names + object.symbols[ELF64_R_SYM(each.r_info)].st_name;
        void* const function   = function_for_profiling_name(name);
        if (function == nullptr) {
            continue;
        }
        const void* const start = start_of(reinterpret_cast<const void*>(base + each.r_offset));
        if (is_redirected(object, start, name) && write_slot(base + each.r_offset, function)) {
            note_redirected(name, start);
        }
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
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        auto tables   = tables_of(reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr));
        tables.handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        tables.is_for_fortran = is_for_fortran(path);
        if (tables.symbols != nullptr && tables.names != nullptr) {
            change_slots(tables, tables.functions, tables.num_functions, object->dlpi_addr);
            change_slots(tables, tables.addresses, tables.num_addresses, object->dlpi_addr);
        }
    }
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

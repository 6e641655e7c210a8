// Open MPI's Fortran bindings, and some of MPICH's, call MPI's functions by their profiling names, so no library can
// stand before them by names alone. Here the entries of their tables of functions are changed to the functions of this
// library, as UCX does to hear of memory that is released (ucm/util/reloc.c).
#include "mpi_functions.h"
#include "settings.h"

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

// The function of this library that stands before PMPI_name; null if there is none.
void* own_function(const char* name)
{
    static void* const self = [] {
        Dl_info info{};
        return dladdr(reinterpret_cast<void*>(&own_function), &info) != 0 && info.dli_fname != nullptr
                   ? dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY)
                   : nullptr;
    }();
    if (self == nullptr || std::strncmp(name, "PMPI_", 5) != 0) {
        return nullptr;
    }
    void* const found = dlsym(self, name + 1);
    Dl_info own{}, its{};
    // dlsym() also looks into the libraries that this one needs.
    const bool is_own = found != nullptr && dladdr(reinterpret_cast<void*>(&own_function), &own) != 0 &&
                        dladdr(found, &its) != 0 && own.dli_fbase == its.dli_fbase;
    return is_own ? found : nullptr;
}

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

std::size_t change_slots(const object_tables& object, const ElfW(Rela) * first, std::size_t number, std::uintptr_t base)
{
    std::size_t changed = 0;
    for (std::size_t i = 0; i < number; ++i) {
        const ElfW(Rela)& each = first[i];
        const auto kind        = static_cast<std::uint32_t>(ELF64_R_TYPE(each.r_info));
        if (kind != slot_of_function && kind != slot_of_address) {
            continue;
        }
        const char* const name = object.names + object.symbols[ELF64_R_SYM(each.r_info)].st_name;
        if (void* const function = own_function(name)) {
            changed += write_slot(base + each.r_offset, function) ? 1 : 0;
        }
    }
    return changed;
}

int look_at(dl_phdr_info* object, std::size_t /*size*/, void* total)
{
    const std::string_view path(object->dlpi_name == nullptr ? "" : object->dlpi_name);
    const std::string_view name = path.substr(path.find_last_of('/') + 1);
    if (!name.starts_with("libmpi_mpifh") && !name.starts_with("libmpi_usempi") && !name.starts_with("libmpichfort")) {
        return 0;
    }
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        const auto tables =
            tables_of(reinterpret_cast<const ElfW(Dyn)*>(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr));
        if (tables.symbols != nullptr && tables.names != nullptr) {
            *static_cast<std::size_t*>(total) +=
                change_slots(tables, tables.functions, tables.num_functions, object->dlpi_addr) +
                change_slots(tables, tables.addresses, tables.num_addresses, object->dlpi_addr);
        }
    }
    return 0;
}

// When the process starts: MPI_INIT of Fortran is one of these functions. Libraries that the process needs are there.
[[gnu::constructor]] void stand_before_fortran()
{
    std::size_t number = 0;
    dl_iterate_phdr(look_at, &number);
}

} // namespace

} // namespace ucxl::mpi

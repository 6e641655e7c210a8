#include "function_slots.h"

#include <cstddef>
#include <cstring>
#include <elf.h>

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

void visit_some(const object_tables& object, const ElfW(Rela) * first, std::size_t number, std::uintptr_t base,
                slot_visitor visit, void* arg)
{
    for (std::size_t i = 0; i < number; ++i) {
        const ElfW(Rela)& each = first[i];
        const auto kind        = static_cast<std::uint32_t>(ELF64_R_TYPE(each.r_info));
        if (kind == slot_of_function || kind == slot_of_address) {
            visit(object.names + object.symbols[ELF64_R_SYM(each.r_info)].st_name, base + each.r_offset, arg);
        }
    }
}

} // namespace

void visit_slots(const dl_phdr_info& object, slot_visitor visit, void* arg)
{
    for (int i = 0; i < object.dlpi_phnum; ++i) {
        if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        const auto tables =
            tables_of(reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr));
        if (tables.symbols != nullptr && tables.names != nullptr) {
            visit_some(tables, tables.functions, tables.num_functions, object.dlpi_addr, visit, arg);
            visit_some(tables, tables.addresses, tables.num_addresses, object.dlpi_addr, visit, arg);
        }
    }
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

} // namespace ucxl::mpi

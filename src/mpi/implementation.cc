#include "implementation.h"

#include "call_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <link.h>
#include <string_view>

namespace ucxl::mpi
{

namespace
{

// Open MPI has no call that tells which of its components moves messages. The chosen one begins with versions, then the
// names of its project, framework and component.
const char* why_openmpi_is_without_ucx()
{
    const auto* const chosen = static_cast<const char*>(symbol_of_mpi("mca_pml_base_selected_component"));
    if (chosen == nullptr) {
        return "this Open MPI does not tell how it moves messages";
    }
    constexpr std::size_t head = 160;
    const std::string_view names(chosen, head);
    if (names.find(std::string_view("\0ucx\0", 5)) != std::string_view::npos) {
        return nullptr;
    }
    return names.find(std::string_view("\0ob1\0", 5)) != std::string_view::npos
               ? "Open MPI does not move messages by UCX, but by its pml ob1 (it does with --mca pml ucx)"
               : "Open MPI does not move messages by UCX (it does with --mca pml ucx)";
}

// The value of a line "MPICH Device:      ch4:ucx".
std::string_view line_of(std::string_view text, std::string_view name)
{
    const std::size_t found = text.find(name);
    if (found == std::string_view::npos) {
        return {};
    }
    text.remove_prefix(found + name.size());
    text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    return text.substr(0, text.find('\n'));
}

// Only with UCX alone MPICH has no shared memory of its own. With it, it copies what processes of a host send each
// other, by the CPU or by the kernel, and neither can read a window.
const char* why_mpich_is_without_ucx()
{
    const library_version version;
    const std::string_view device = line_of(version.text(), "MPICH Device:");
    if (!device.starts_with("ch4:ucx")) {
        return "this MPI does not move messages by UCX (of MPICH, the device ch4:ucx does)";
    }
    const std::string_view options    = line_of(version.text(), "MPICH configure:");
    constexpr std::string_view option = "--with-ch4-shmmods=";
    const std::size_t found           = options.find(option);
    const std::string_view modules =
        found == std::string_view::npos ? std::string_view("auto") : options.substr(found + option.size());
    const bool has_modules = !modules.starts_with("auto") && !modules.starts_with("no");
    if (device != "ch4:ucx" || has_modules) {
        return "this MPICH moves messages within a host by shared memory of its own, not by UCX (device ch4:ucx "
               "alone)";
    }
    return nullptr;
}

#ifndef OPEN_MPI
// Those that an MPI lacks are null.
auto numbers_of_mpi()
{
    std::array handles{
        MPI_CHAR, MPI_SIGNED_CHAR, MPI_UNSIGNED_CHAR, MPI_BYTE, MPI_PACKED, MPI_WCHAR, MPI_SHORT, MPI_UNSIGNED_SHORT,
        MPI_INT, MPI_UNSIGNED, MPI_LONG, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_LONG_LONG, MPI_INT8_T,
        MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T, MPI_UINT64_T, MPI_AINT,
        MPI_COUNT, MPI_OFFSET, MPI_FLOAT, MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_BOOL, MPI_C_FLOAT_COMPLEX,
        MPI_C_DOUBLE_COMPLEX, MPI_C_LONG_DOUBLE_COMPLEX, MPI_CXX_BOOL, MPI_CXX_FLOAT_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
        MPI_CXX_LONG_DOUBLE_COMPLEX, MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_LONG_INT, MPI_2INT, MPI_SHORT_INT,
        MPI_LONG_DOUBLE_INT,
        // Fortran
        MPI_CHARACTER, MPI_LOGICAL, MPI_INTEGER, MPI_REAL, MPI_DOUBLE_PRECISION, MPI_COMPLEX, MPI_DOUBLE_COMPLEX,
        MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8, MPI_INTEGER16, MPI_REAL4, MPI_REAL8, MPI_REAL16,
        MPI_COMPLEX8, MPI_COMPLEX16, MPI_COMPLEX32, MPI_2INTEGER, MPI_2REAL, MPI_2DOUBLE_PRECISION};
    std::ranges::sort(handles, {}, number_of<MPI_Datatype>);
    return handles;
}
#endif

} // namespace

#if UCXL_STANDARD_ABI
// They are less than the address of the second page.
handle_ranges own_type_handles() noexcept
{
    constexpr handle_range all{0, 4095};
    return {all, all};
}
#elif defined(OPEN_MPI)
// The segment of a library or program that has this variable.
handle_range segment_with(std::uintptr_t variable) noexcept
{
    handle_range found{variable, variable};
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t /*size*/, void* to_fill) {
            auto& range = *static_cast<handle_range*>(to_fill);
            for (int i = 0; i < object->dlpi_phnum; ++i) {
                const auto& segment = object->dlpi_phdr[i];
                const auto start    = object->dlpi_addr + segment.p_vaddr;
                if (segment.p_type == PT_LOAD && range.first - start < segment.p_memsz) {
                    range = {start, start + segment.p_memsz - 1};
                    return 1;
                }
            }
            return 0;
        },
        &found);
    return found;
}

// Variables of Open MPI of which a program may have copies: its own datatypes, and what nearly every program refers to.
constexpr std::array variables_of_programs{"ompi_mpi_datatype_null",
                                           "ompi_mpi_packed",
                                           "ompi_mpi_char",
                                           "ompi_mpi_signed_char",
                                           "ompi_mpi_unsigned_char",
                                           "ompi_mpi_wchar",
                                           "ompi_mpi_short",
                                           "ompi_mpi_unsigned_short",
                                           "ompi_mpi_int",
                                           "ompi_mpi_unsigned",
                                           "ompi_mpi_long",
                                           "ompi_mpi_unsigned_long",
                                           "ompi_mpi_long_long_int",
                                           "ompi_mpi_unsigned_long_long",
                                           "ompi_mpi_float",
                                           "ompi_mpi_double",
                                           "ompi_mpi_long_double",
                                           "ompi_mpi_c_bool",
                                           "ompi_mpi_int8_t",
                                           "ompi_mpi_int16_t",
                                           "ompi_mpi_int32_t",
                                           "ompi_mpi_int64_t",
                                           "ompi_mpi_uint8_t",
                                           "ompi_mpi_uint16_t",
                                           "ompi_mpi_uint32_t",
                                           "ompi_mpi_uint64_t",
                                           "ompi_mpi_aint",
                                           "ompi_mpi_count",
                                           "ompi_mpi_offset",
                                           "ompi_mpi_c_complex",
                                           "ompi_mpi_c_float_complex",
                                           "ompi_mpi_c_double_complex",
                                           "ompi_mpi_c_long_double_complex",
                                           "ompi_mpi_cxx_bool",
                                           "ompi_mpi_cxx_cplex",
                                           "ompi_mpi_cxx_dblcplex",
                                           "ompi_mpi_cxx_ldblcplex",
                                           "ompi_mpi_float_int",
                                           "ompi_mpi_double_int",
                                           "ompi_mpi_longdbl_int",
                                           "ompi_mpi_long_int",
                                           "ompi_mpi_short_int",
                                           "ompi_mpi_2int",
                                           "ompi_mpi_character",
                                           "ompi_mpi_logical",
                                           "ompi_mpi_integer",
                                           "ompi_mpi_real",
                                           "ompi_mpi_dblprec",
                                           "ompi_mpi_cplex",
                                           "ompi_mpi_dblcplex",
                                           "ompi_mpi_comm_world"};

// Addresses of variables of the library, or of the program: the linker moves there those that the program refers to.
handle_ranges own_type_handles() noexcept
{
    static const handle_ranges found = [] -> handle_ranges {
        const handle_range of_bytes = segment_with(number_of(MPI_BYTE));
        for (const char* const each : variables_of_programs) {
            const auto variable = reinterpret_cast<std::uintptr_t>(symbol_of_mpi(each));
            if (variable != 0 && !of_bytes.has(variable)) {
                return {of_bytes, segment_with(variable)};
            }
        }
        return {of_bytes, of_bytes};
    }();
    return found;
}
#else
// Numbers of which the first bits tell the kind: derived datatypes have the first one.
handle_ranges own_type_handles() noexcept
{
    constexpr handle_range all{0, 0x7fffffff};
    return {all, all};
}
#endif

#ifdef OPEN_MPI
bool is_own_number(MPI_Datatype type) noexcept
{
    const handle_ranges own = own_type_handles();
    return (own[0].has(number_of(type)) || own[1].has(number_of(type))) && type != MPI_DATATYPE_NULL;
}
#else
bool is_own_number(MPI_Datatype type) noexcept
{
    static const auto handles = numbers_of_mpi();
    return type != MPI_DATATYPE_NULL &&
           std::ranges::binary_search(handles, number_of(type), {}, number_of<MPI_Datatype>);
}
#endif

#if UCXL_STANDARD_ABI
implementation implementation_below() noexcept
{
    static const implementation found = [] {
        const library_version version;
        if (version.text().starts_with("Open MPI")) {
            return implementation::openmpi;
        }
        return version.text().starts_with("MPICH") ? implementation::mpich : implementation::unknown;
    }();
    return found;
}

const char* own_name() noexcept
{
    return "libmpi_layout.so";
}

const char* own_handles() noexcept
{
    return "the standard ABI of MPI 5 (libmpi_abi.so.1)";
}

// The same MPI in the library with handles of its own says that it has no standard ABI.
bool has_other_handles() noexcept
{
    int major = 0, minor = 0;
    return !has_function("MPI_Abi_get_version") || PMPI_Abi_get_version(&major, &minor) != MPI_SUCCESS ||
           major != MPI_ABI_VERSION;
}
#else
const char* own_name() noexcept
{
    return implementation_below() == implementation::openmpi ? "libmpi_layout_openmpi.so" : "libmpi_layout_mpich.so";
}

const char* own_handles() noexcept
{
    return implementation_below() == implementation::openmpi ? "handles of Open MPI" : "handles of MPICH";
}

bool has_other_handles() noexcept
{
    const bool is_openmpi = symbol_of_mpi("ompi_mpi_comm_world") != nullptr;
    // The standard ABI of MPI 5 is in a library of its own.
    return is_openmpi != (implementation_below() == implementation::openmpi) ||
           std::string_view(file_of_mpi()).find("libmpi_abi") != std::string_view::npos;
}
#endif

bool isendrecv_ends_datatypes() noexcept
{
    static const bool found = [] {
        if (implementation_below() != implementation::mpich) {
            return false;
        }
        const library_version version;
        const std::string_view release = line_of(version.text(), "MPICH Version:");
        int major = 0, minor = 0;
        const auto point = std::from_chars(release.data(), release.data() + release.size(), major).ptr;
        if (point != release.data() + release.size() && *point == '.') {
            std::from_chars(point + 1, release.data() + release.size(), minor);
        }
        return major < 4 || (major == 4 && minor < 3);
    }();
    return found;
}

const char* why_without_ucx() noexcept
{
    switch (implementation_below()) {
    case implementation::openmpi:
        return why_openmpi_is_without_ucx();
    case implementation::mpich:
        return why_mpich_is_without_ucx();
    case implementation::unknown:
        break;
    }
    return "this MPI is neither Open MPI nor MPICH";
}

} // namespace ucxl::mpi

#include "implementation.h"

#include <cstddef>
#include <string_view>

#include <dlfcn.h>

namespace ucxl::mpi
{

namespace
{

class library_version
{
public:
    library_version() { PMPI_Get_library_version(_text, &_length); }
    std::string_view text() const { return {_text, static_cast<std::size_t>(_length)}; }

private:
    char _text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int _length                                = 0;
};

// Open MPI has no call that tells which of its components moves messages. The chosen one begins with its name.
const char* why_openmpi_is_without_ucx()
{
    const auto* const chosen = static_cast<const char*>(dlsym(RTLD_DEFAULT, "mca_pml_base_selected_component"));
    if (chosen == nullptr) {
        return "this Open MPI does not tell how it moves messages";
    }
    constexpr std::string_view name("\0ucx\0", 5);
    constexpr std::size_t head = 160; // versions, then names of project, framework and component
    return std::string_view(chosen, head).find(name) == std::string_view::npos
               ? "Open MPI does not move messages by UCX (it does with --mca pml ucx)"
               : nullptr;
}

const char* why_mpich_is_without_ucx()
{
    const library_version version;
    return version.text().find("ch4:ucx") == std::string_view::npos
               ? "this MPICH does not move messages by UCX (device ch4:ucx)"
               : nullptr;
}

} // namespace

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
    return PMPI_Abi_get_version == nullptr || PMPI_Abi_get_version(&major, &minor) != MPI_SUCCESS ||
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
    const bool is_openmpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != nullptr;
    // The standard ABI of MPI 5 is in a library of its own.
    return is_openmpi != (implementation_below() == implementation::openmpi) ||
           dlopen("libmpi_abi.so.1", RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}
#endif

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

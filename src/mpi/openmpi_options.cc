#include "openmpi_options.h"

#include "call_table.h"
#include "implementation.h"
#include "settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <ranges>
#include <string_view>
#include <system_error>

namespace ucxl::mpi
{

namespace
{

// mpirun passes here what its command line says, a file that it names, and the parameter file in the home folder.
bool is_ucx_asked_for()
{
    const char* const set = std::getenv("OMPI_MCA_pml");
    if (set == nullptr || set[0] == '^') {
        return false;
    }
    return std::ranges::any_of(std::string_view(set) | std::views::split(','),
                               [](auto name) { return std::string_view(name) == "ucx"; });
}

// Asking for a component that is not there ends MPI_Init. It is a part of the library, or a file in the folder of
// components beside it.
bool has_ucx_component()
{
    if (symbol_of_mpi("mca_pml_ucx_component") != nullptr) {
        return true;
    }
    std::error_code ignored;
    const auto folder = std::filesystem::canonical(file_of_mpi(), ignored).parent_path();
    return std::filesystem::exists(folder / "openmpi" / "mca_pml_ucx.so", ignored);
}

// Of a parameter with one or more names, the first one is used.
void set_unless_chosen(std::initializer_list<const char*> names, const char* value)
{
    if (std::ranges::none_of(names, [](const char* name) { return std::getenv(name) != nullptr; })) {
        setenv(*names.begin(), value, 1);
        log_info("%s=%s was set, for Open MPI to use UCX on this host", *names.begin(), value);
    }
}

} // namespace

void let_openmpi_use_ucx()
{
    if (implementation_below() != implementation::openmpi) {
        return;
    }
    if (settings::get().prefers_ucx && has_ucx_component()) {
        set_unless_chosen({"OMPI_MCA_pml"}, "ucx");
    }
    if (!is_ucx_asked_for()) {
        return;
    }
    // That of devices is not needed: it would only put UCX before components that the user may prefer.
    set_unless_chosen({"OMPI_MCA_pml_ucx_tls", "OMPI_MCA_osc_ucx_tls", "OMPI_MCA_opal_common_ucx_tls"}, "any");
    // Debian excludes UCX from one-sided operations. Where nothing is excluded, Open MPI 5.0.11 takes osc rdma, which
    // crashes in MPI_Win_create beside pml ucx.
    set_unless_chosen({"OMPI_MCA_osc"}, "ucx,sm");
}

} // namespace ucxl::mpi

// Which MPI a launcher starts, and which one a program is linked with.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ucxl::mpi_run
{

enum class launcher_kind : unsigned char { openmpi, hydra };
enum class handles : unsigned char { openmpi, mpich, standard };

struct launcher {
    launcher_kind kind;
    std::string name; // for people, with its version
};

// By what the launcher prints for --version. None for a program that is no launcher by its name: asking it could run
// it.
std::optional<launcher> ask_launcher(const std::string& command);
// By the launcher's first lines for --version.
std::optional<launcher> launcher_of(std::string_view version);

// The first argument that is a program linked with an MPI, as the dynamic linker finds it now.
struct linked_program {
    std::size_t index; // in the arguments
    handles uses;
    std::string library; // libmpi.so.40
};
// None if there is no such argument: Python opens its MPI when it runs.
std::optional<linked_program> find_program(const std::vector<std::string>& arguments);
// Which MPI is among the libraries that ldd lists.
std::optional<std::pair<handles, std::string>> mpi_among(std::string_view libraries);

} // namespace ucxl::mpi_run

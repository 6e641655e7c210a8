// mpi-layout-run: starts a program by the launcher of its MPI, with libmpi_layout and the heap in its processes.
//
// It becomes the launcher, so status and signals are the launcher's. The launcher itself preloads nothing.
#include "command.h"
#include "config.h"
#include "libraries.h"
#include "which_mpi.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace
{

using namespace ucxl::mpi_run;

constexpr const char* examples = R"(
examples:
  mpi-layout-run mpirun -n 4 ./program
  mpi-layout-run --no-heap mpiexec -n 4 python3 program.py
  mpi-layout-run --dry-run mpirun -n 4 ./program               print the command instead
See mpi-layout-run(1).)";

struct options {
    bool has_heap          = true;
    bool has_static_arrays = false;
    bool is_quiet          = false;
    bool is_dry            = false;
    std::string mpi; // --mpi
    std::vector<std::string> command;
};

class failure : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

void say(const std::string& text)
{
    fmt::print(stderr, "mpi-layout-run: {}\n", text);
}

std::string variable_or(const char* name, const std::string& otherwise)
{
    const char* const value = std::getenv(name);
    return value == nullptr ? otherwise : value;
}

// What the user says in the place of what is found out.
struct named_mpi {
    const char* name;
    launcher_kind kind;
    handles uses;
};
constexpr named_mpi named[] = {{"openmpi", launcher_kind::openmpi, handles::openmpi},
                               {"mpich", launcher_kind::hydra, handles::mpich},
                               {"openmpi-abi", launcher_kind::openmpi, handles::standard},
                               {"mpich-abi", launcher_kind::hydra, handles::standard}};

// What to start, and a sentence if it is the command as it is.
struct plan {
    std::vector<std::string> command;
    std::string why_unchanged;
};

plan unchanged(const options& chosen, const std::string& why)
{
    return {chosen.command, why + "; the program runs as without mpi-layout-run"};
}

// What the user chose, so that Open MPI does not use UCX; else empty.
std::string pml_without_ucx(const std::vector<std::string>& command, std::size_t end)
{
    const std::string pml = pml_in(command, end).value_or(variable_or("OMPI_MCA_pml", ""));
    return pml.empty() || allows_ucx(pml) ? "" : pml;
}

// `end` is where the launcher's own words end.
plan with_library(const options& chosen, launcher_kind kind, handles uses, std::size_t end)
{
    const std::string library = path_of_library(library_for(uses));
    if (library.empty()) {
        return unchanged(chosen, fmt::format("{} is not installed", library_for(uses)));
    }
    std::vector<std::string> libraries{library};
    const std::string pml = kind == launcher_kind::openmpi ? pml_without_ucx(chosen.command, end) : "";
    if (!pml.empty()) {
        if (chosen.has_heap || chosen.has_static_arrays) {
            say(fmt::format("Open MPI moves messages by its pml {}, not by UCX: the program's memory is not shared",
                            pml));
        }
    } else if (chosen.has_heap) {
        if (const std::string heap = path_of_library(heap_library); !heap.empty()) {
            libraries.push_back(heap);
        } else {
            say(fmt::format("{} is not installed: large allocations stay where they are", heap_library));
        }
    }
    variables set{{"LD_PRELOAD", preload_with(variable_or("LD_PRELOAD", ""), libraries)},
                  {"UCX_LAYOUT_MPI_STATUS", variable_or("UCX_LAYOUT_MPI_STATUS", chosen.is_quiet ? "n" : "y")}};
    if (chosen.has_static_arrays && pml.empty()) {
        set.emplace_back("UCX_LAYOUT_MPI_STATIC_ARRAYS", "y");
    }
    if (kind == launcher_kind::openmpi) {
        set.emplace_back("UCX_LAYOUT_MPI_PML", variable_or("UCX_LAYOUT_MPI_PML", "ucx"));
    }
    return {with_variables(chosen.command, kind, set), ""};
}

plan make_plan(const options& chosen)
{
    const std::string& launched_by = chosen.command.front();
    const auto program             = find_program({chosen.command.begin() + 1, chosen.command.end()});
    const std::size_t end          = program ? program->index + 1 : chosen.command.size();
    if (const auto option = option_with_preload(chosen.command, end)) {
        throw failure(fmt::format("{}: mpi-layout-run sets LD_PRELOAD itself; put yours into its environment, it is "
                                  "kept and comes first",
                                  *option));
    }
    for (const named_mpi& each : named) {
        if (chosen.mpi == each.name) {
            return with_library(chosen, each.kind, each.uses, end);
        }
    }
    const auto found = ask_launcher(launched_by);
    if (!found) {
        return unchanged(chosen, fmt::format("{} is not a launcher of Open MPI, MPICH or Intel MPI (--mpi says which "
                                             "one it is)",
                                             launched_by));
    }
    const handles of_launcher = found->kind == launcher_kind::openmpi ? handles::openmpi : handles::mpich;
    const handles uses        = program ? program->uses : of_launcher;
    if (uses != of_launcher && uses != handles::standard) {
        return unchanged(chosen, fmt::format("{} is the launcher of {}, but {} needs {}", launched_by, found->name,
                                             chosen.command[program->index + 1], program->library));
    }
    return with_library(chosen, found->kind, uses, end);
}

void add_options(CLI::App& app, options& into)
{
    app.usage("usage: mpi-layout-run [OPTIONS] LAUNCHER [ARGUMENTS] PROGRAM [ARGUMENTS]");
    app.footer(examples);
    app.prefix_command();
    app.add_flag("!--no-heap", into.has_heap, "leave the program's allocations where they are");
    app.add_flag("--static-arrays", into.has_static_arrays, "share the static arrays of the program, too");
    app.add_option("--mpi", into.mpi, "which MPI it is: openmpi, mpich, openmpi-abi, mpich-abi (default: ask LAUNCHER)")
        ->type_name("NAME")
        ->check(CLI::IsMember({"openmpi", "mpich", "openmpi-abi", "mpich-abi"}));
    app.add_flag("--quiet", into.is_quiet, "do not say what is active");
    app.add_flag("--dry-run", into.is_dry, "print the command for a shell, and do not run it");
    app.set_version_flag("-V,--version", std::string("mpi-layout-run ") + PACKAGE_VERSION, "print the version");
}

int run(const options& chosen)
{
    const plan made = make_plan(chosen);
    if (!made.why_unchanged.empty()) {
        say(made.why_unchanged);
    }
    if (chosen.is_dry) {
        fmt::print("{}\n", quoted(made.command));
        return 0;
    }
    std::vector<char*> arguments;
    for (const std::string& each : made.command) {
        arguments.push_back(const_cast<char*>(each.c_str()));
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    const int error = errno;
    say(fmt::format("{}: {}", made.command.front(), std::strerror(error)));
    return error == ENOENT ? 127 : 126;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app("Starts an MPI program whose datatypes move by layouts.", "mpi-layout-run");
    options chosen;
    try {
        add_options(app, chosen);
        app.parse(argc, argv);
        chosen.command = app.remaining();
        if (!chosen.command.empty() && chosen.command.front() == "--") {
            chosen.command.erase(chosen.command.begin());
        }
        if (chosen.command.empty()) {
            throw failure("a launcher is missing: mpi-layout-run [OPTIONS] LAUNCHER [ARGUMENTS] PROGRAM");
        }
        if (chosen.command.front().starts_with('-')) {
            throw failure(fmt::format("{} is not an option", chosen.command.front()));
        }
        return run(chosen);
    } catch (const CLI::Success& shown) {
        return app.exit(shown);
    } catch (const std::exception& error) {
        say(fmt::format("{}\ntry mpi-layout-run --help", error.what()));
        return 2;
    }
}

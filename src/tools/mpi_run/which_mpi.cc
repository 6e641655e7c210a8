#include "which_mpi.h"

#include "output_of.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ranges>
#include <utility>

#include <unistd.h>

namespace ucxl::mpi_run
{

namespace
{

bool is_launcher_by_name(const std::string& command)
{
    const std::string name                   = std::filesystem::path(command).filename();
    constexpr std::array<const char*, 4> all = {"mpirun", "mpiexec", "orterun", "prterun"};
    return std::ranges::any_of(all, [&](const char* each) { return name.starts_with(each); });
}

// The word that begins with a digit, behind `before`.
std::string version_behind(std::string_view text, std::string_view before)
{
    const std::size_t found = text.find(before);
    const std::size_t start =
        found == std::string_view::npos ? found : text.find_first_of("0123456789", found + before.size());
    if (start == std::string_view::npos) {
        return "";
    }
    text.remove_prefix(start);
    return " " + std::string(text.substr(0, text.find_first_of(" \t\n")));
}

bool is_elf(const std::filesystem::path& path)
{
    std::array<char, 4> start{};
    std::ifstream(path, std::ios::binary).read(start.data(), start.size());
    return std::string_view(start.data(), start.size()) == "\177ELF";
}

// Where the system finds a command, if it is a program that it can run and no script.
std::string path_of_program(const std::string& word)
{
    const auto is_program = [](const std::filesystem::path& path) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0 && is_elf(path);
    };
    if (word.empty() || word.front() == '-') {
        return "";
    }
    if (word.find('/') != std::string::npos) {
        return is_program(word) ? word : "";
    }
    const char* const folders = std::getenv("PATH");
    for (const auto folder : std::views::split(std::string_view(folders == nullptr ? "" : folders), ':')) {
        const auto path = std::filesystem::path(std::string_view(folder)) / word;
        if (is_program(path)) {
            return path;
        }
    }
    return "";
}

} // namespace

std::optional<launcher> launcher_of(std::string_view version)
{
    if (version.find("Open MPI") != std::string_view::npos) {
        return launcher{launcher_kind::openmpi, "Open MPI" + version_behind(version, "Open MPI")};
    }
    if (version.find("PRRTE") != std::string_view::npos) {
        return launcher{launcher_kind::openmpi, "PRRTE" + version_behind(version, "PRRTE")};
    }
    if (version.find("HYDRA") != std::string_view::npos) {
        return launcher{launcher_kind::hydra, "MPICH" + version_behind(version, "Version:")};
    }
    if (version.find("Intel(R) MPI Library") != std::string_view::npos) {
        return launcher{launcher_kind::hydra, "Intel MPI" + version_behind(version, "Version")};
    }
    return std::nullopt;
}

std::optional<launcher> ask_launcher(const std::string& command)
{
    if (!is_launcher_by_name(command)) {
        return std::nullopt;
    }
    const auto version = output_of({command, "--version"});
    return version ? launcher_of(*version) : std::nullopt;
}

std::optional<std::pair<handles, std::string>> mpi_among(std::string_view libraries)
{
    constexpr std::array<std::pair<std::string_view, handles>, 4> known = {{{"libmpi_abi.so.1", handles::standard},
                                                                            {"libmpi.so.40", handles::openmpi},
                                                                            {"libmpi.so.12", handles::mpich},
                                                                            {"libmpich.so.12", handles::mpich}}};
    for (const auto& [name, uses] : known) {
        for (const auto line : std::views::split(libraries, '\n')) {
            std::string_view text(line);
            text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
            if (text.starts_with(name) && (text.size() == name.size() || text[name.size()] == ' ')) {
                return std::pair{uses, std::string(name)};
            }
        }
    }
    return std::nullopt;
}

std::optional<linked_program> find_program(const std::vector<std::string>& arguments)
{
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string path = path_of_program(arguments[i]);
        const auto libraries   = path.empty() ? std::nullopt : output_of({"ldd", path});
        const auto found       = libraries ? mpi_among(*libraries) : std::nullopt;
        if (found) {
            return linked_program{i, found->first, found->second};
        }
    }
    return std::nullopt;
}

} // namespace ucxl::mpi_run

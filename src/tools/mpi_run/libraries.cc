#include "libraries.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace ucxl::mpi_run
{

const char* library_for(handles uses)
{
    switch (uses) {
    case handles::openmpi:
        return "libmpi_layout_openmpi.so";
    case handles::mpich:
        return "libmpi_layout_mpich.so";
    case handles::standard:
        break;
    }
    return "libmpi_layout.so";
}

std::string path_of_library(const std::string& name)
{
    std::error_code ignored;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
    for (const auto& each : {folder / ".libs", folder.parent_path() / "lib", std::filesystem::path(UCXL_LIBDIR)}) {
        if (std::filesystem::exists(each / name, ignored)) {
            return each / name;
        }
    }
    return "";
}

// The dynamic linker takes colons and spaces.
std::string preload_with(const std::string& present, const std::vector<std::string>& more)
{
    std::string all = present;
    for (const std::string& path : more) {
        const std::string name = std::filesystem::path(path).filename();
        bool is_there          = false;
        for (std::size_t start = 0; start < present.size();) {
            const std::size_t end = std::min(present.find_first_of(": ", start), present.size());
            is_there |= std::filesystem::path(present.substr(start, end - start)).filename() == name;
            start = end + 1;
        }
        if (!is_there) {
            all += (all.empty() ? "" : ":") + path;
        }
    }
    return all;
}

} // namespace ucxl::mpi_run

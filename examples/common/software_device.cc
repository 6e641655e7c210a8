#include "software_device.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <unistd.h>

namespace examples
{

namespace fs = std::filesystem;

static bool is_active(const fs::path& port)
{
    std::string state;
    std::getline(std::ifstream(port / "state"), state); // "4: ACTIVE"
    return state.contains("ACTIVE");
}

std::vector<std::string> active_devices()
{
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none)) {
        const std::string name = device.path().filename();
        for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
            if (name.starts_with("mlx5_") && is_active(port.path())) {
                names.push_back(name);
                break;
            }
        }
    }
    std::ranges::sort(names);
    return names;
}

bool is_software_device()
{
    return std::getenv("SOFTHCA_FABRIC") != nullptr; // softhca-run sets it
}

std::string find_softhca_run()
{
    constexpr const char* name = "softhca-run";
    std::vector<fs::path> folders;
    const fs::path own = fs::read_symlink("/proc/self/exe").parent_path();
    folders.push_back(own);
    if (own.filename() == ".libs") { // of a build
        folders.push_back(own.parent_path());
    }
    const char* const path = std::getenv("PATH");
    for (std::string_view rest = path == nullptr ? "" : path; !rest.empty();) {
        const std::size_t end = std::min(rest.find(':'), rest.size());
        folders.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    for (const fs::path& folder : folders) {
        if (access((folder / name).c_str(), X_OK) == 0) {
            return folder / name;
        }
    }
    return {};
}

} // namespace examples

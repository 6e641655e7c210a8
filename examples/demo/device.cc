#include "device.h"

#include "examples/common/check.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <uct/api/uct.h>
#include <unistd.h>
#include <vector>

namespace examples
{

namespace fs = std::filesystem;

static bool is_active(const fs::path& port)
{
    std::string state;
    std::getline(std::ifstream(port / "state"), state); // "4: ACTIVE"
    return state.contains("ACTIVE");
}

std::string find_device()
{
    std::error_code none;
    for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none)) {
        for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
            if (device.path().filename().string().starts_with("mlx5_") && is_active(port.path())) {
                return device.path().filename();
            }
        }
    }
    return {};
}

bool is_software_device()
{
    return std::getenv("SOFTHCA_FABRIC") != nullptr; // softhca-run sets it
}

bool ucx_has_devices()
{
    uct_component_h* components = nullptr;
    unsigned count              = 0;
    check(uct_query_components(&components, &count), "uct_query_components");
    bool found = false;
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t attr{};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        found = found || (uct_component_query(components[i], &attr) == UCS_OK && !std::strcmp(attr.name, "ib"));
    }
    uct_release_component_list(components);
    return found;
}

// Beside this program, or where the shell would find it.
static std::string find_softhca_run()
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

void restart_with_device(char** argv)
{
    constexpr const char* restarted = "UCXL_DEMO_DEVICE";
    if (std::getenv(restarted) != nullptr) {
        return;
    }
    std::vector<std::string> words;
    if (find_device().empty()) {
        words = {find_softhca_run(), "--"};
        if (words[0].empty()) {
            return;
        }
    }
    words.push_back(fs::read_symlink("/proc/self/exe"));
    std::vector<char*> line;
    for (std::string& word : words) {
        line.push_back(word.data());
    }
    for (++argv; *argv != nullptr; ++argv) {
        line.push_back(*argv);
    }
    line.push_back(nullptr);
    setenv(restarted, "y", 1);
    setenv("UCX_VFS_ENABLE", "n", 1); // as restart_without_ucx_thread() does
    setenv("UCX_LAYOUT_KEYS_WINDOWS", "keys", 1);
    setenv("UCX_LAYOUT_KEYS_SAME_HOST", "always", 1);
    execv(line[0], line.data());
    throw std::runtime_error(std::string("the program cannot start itself again: ") + std::strerror(errno));
}

} // namespace examples

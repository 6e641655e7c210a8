#include "device.h"

#include "examples/common/check.h"
#include "examples/common/software_device.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <uct/api/uct.h>
#include <unistd.h>
#include <vector>

namespace examples
{

namespace fs = std::filesystem;

std::string find_device()
{
    const std::vector<std::string> found = active_devices();
    return found.empty() ? std::string() : found.front();
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

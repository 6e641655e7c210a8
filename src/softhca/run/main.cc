// softhca-run: runs a command with software mlx5 devices. Makes their memory, keeps it while the command runs, and
// reports at the end what the devices did.
#include "change.h"
#include "child.h"
#include "options.h"
#include "report.h"
#include "softhca/shim/host/fabric_memory.h"
#include "supervisor.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <unistd.h>

namespace
{

using namespace ucxl::softhca;
using namespace ucxl::softhca::run;

constexpr const char* library_name     = "libsofthca.so";
constexpr const char* library_variable = "SOFTHCA_LIBRARY";
constexpr int own_failure              = 2; // exit status

class failure : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

// The library is beside this program in a build tree, in the library folder where it was installed, or where the user
// says.
std::string find_library()
{
    if (const char* const given = std::getenv(library_variable)) {
        if (::access(given, R_OK) != 0) {
            throw failure(fmt::format("{} {}: {}", library_variable, given, std::strerror(errno)));
        }
        return given;
    }
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    for (const auto& place : {folder / ".libs" / library_name, folder.parent_path() / "lib" / "softhca" / library_name,
                              std::filesystem::path(SOFTHCA_LIBDIR) / library_name}) {
        if (std::filesystem::exists(place)) {
            return place.string();
        }
    }
    throw failure(fmt::format("{} is not where it was installed; {} may name it", library_name, library_variable));
}

// Makes the path absolute, because commands may change their folder, and reports a file that cannot be written before
// the command runs.
std::string prepare_file(const std::string& path, const char* option)
{
    if (path.empty() || path == "-") {
        return path;
    }
    if (!std::ofstream(path, std::ios::trunc)) {
        throw failure(fmt::format("{} {}: {}", option, path, std::strerror(errno)));
    }
    return std::filesystem::absolute(path).string();
}

// False with a message if not all of it was written.
bool write_report(const arena& memory, const std::string& path)
{
    const std::string text = report_as_json(memory);
    bool is_written        = false;
    errno                  = 0;
    if (path == "-") {
        is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    } else {
        is_written = static_cast<bool>(std::ofstream(path, std::ios::trunc) << text << std::flush);
    }
    if (!is_written) {
        fmt::print(stderr, "softhca-run: --stats {}: {}\n", path, std::strerror(errno));
    }
    return is_written;
}

std::vector<variable> environment_of(const settings& chosen, const fabric_memory& memory, const std::string& library)
{
    const char* const preloaded = std::getenv("LD_PRELOAD");
    const std::string others    = preloaded != nullptr && *preloaded != '\0' ? std::string(":") + preloaded : "";
    return {{.name = "LD_PRELOAD", .value = library + others},
            {.name = fabric_variable, .value = to_text({.process = ::getpid(), .file = memory.file()})},
            {.name = trace_variable, .value = chosen.trace}};
}

ending run_with_device(settings chosen, const std::vector<std::string>& command)
{
    chosen.order       = order_with_seed(chosen.order);
    const auto options = to_options(chosen);
    if (!options) {
        throw failure(options.error());
    }
    const auto memory = fabric_memory::create(*options);
    if (!memory) {
        throw failure(memory.error());
    }
    const std::string library = find_library();
    chosen.trace              = prepare_file(chosen.trace, "--trace");
    chosen.stats              = prepare_file(chosen.stats, "--stats");
    auto watching             = supervisor::start(*memory, options->faults);
    ending how                = run_command(command, environment_of(chosen, *memory, library));
    watching.reset();
    if (options->adversarial_seed && (how.status != 0 || how.signal != 0)) {
        fmt::print(stderr, "softhca-run: the command failed with --order {}\n", chosen.order);
    }
    if (!chosen.stats.empty() && !write_report(memory->records(), chosen.stats) && how.status == 0 && how.signal == 0) {
        how.status = own_failure;
    }
    return how;
}

} // namespace

int main(int argc, char** argv)
{
    try {
        const command_line line = parse_command_line(argc, argv);
        if (line.done) {
            return line.status;
        }
        if (!line.change.empty()) {
            change_running_device(line.change, line.changed);
            return 0;
        }
        end_like(run_with_device(line.chosen, line.command));
    } catch (const std::exception& error) {
        fmt::print(stderr, "softhca-run: {}\n", error.what());
        return own_failure;
    }
}

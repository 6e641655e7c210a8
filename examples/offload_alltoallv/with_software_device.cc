#include "with_software_device.h"

#include "examples/common/software_device.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace examples
{

namespace
{

using json = nlohmann::ordered_json;

// A file without a name, which other processes open by a path.
class unnamed_file
{
public:
    explicit unnamed_file(const char* purpose) : _fd(memfd_create(purpose, MFD_CLOEXEC))
    {
        if (_fd < 0) {
            throw std::runtime_error(fmt::format("memfd_create: {}", std::strerror(errno)));
        }
    }
    ~unnamed_file() { close(_fd); }
    unnamed_file(const unnamed_file&)            = delete;
    unnamed_file& operator=(const unnamed_file&) = delete;

    std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), _fd); }
    json content() const
    {
        std::ifstream file(path());
        return json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    }

private:
    int _fd;
};

int run(std::vector<std::string> command)
{
    std::vector<char*> words;
    for (std::string& word : command) {
        words.push_back(word.data());
    }
    words.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        execv(words[0], words.data());
        _exit(127);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

// How often the device did each thing.
json counts_of(const json& records)
{
    json counts = json::object();
    for (const auto& [name, record] : records.items()) {
        counts[name] = record["count"];
    }
    return counts;
}

} // namespace

int run_on_software_device(char** argv)
{
    const unnamed_file device("device");
    const unnamed_file result("result");
    std::vector<std::string> command{find_softhca_run(), "--functions", "2",          "--stats", device.path(), "--",
                                     "/proc/self/exe",   "--result-to", result.path()};
    command[6].resize(4096);
    command[6].resize(static_cast<std::size_t>(readlink("/proc/self/exe", command[6].data(), command[6].size())));
    for (++argv; *argv != nullptr; ++argv) {
        command.emplace_back(*argv);
    }
    if (const int status = run(command); status != 0) {
        return status;
    }
    json line             = result.content();
    const json statistics = device.content();
    line["device"]        = {{"commands", counts_of(statistics["commands"])},
                             {"work_requests", counts_of(statistics["wqes"])},
                             {"keys_left", statistics["keys_left"]}};
    fmt::print("{}\n", line.dump());
    return 0;
}

} // namespace examples

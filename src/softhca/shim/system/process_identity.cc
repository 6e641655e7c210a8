#include "process_identity.h"

#include "libc_functions.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace ucxl::softhca
{
namespace
{

struct process_state {
    char state;
    std::uint64_t start_time;
};

std::optional<process_state> look_at(std::int32_t process)
{
    std::array<char, 32> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", process);
    const int file = libc().open(path.data(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return std::nullopt;
    }
    std::array<char, 1024> text;
    const ssize_t length = ::read(file, text.data(), text.size() - 1);
    libc().close(file);
    if (length <= 0) {
        return std::nullopt;
    }
    text[static_cast<std::size_t>(length)] = '\0';
    // The name, in parentheses, may contain anything. After it come the state (field 3) and numbers.
    const char* at = std::strrchr(text.data(), ')');
    if (at == nullptr || at[1] != ' ') {
        return std::nullopt;
    }
    process_state found{.state = at[2], .start_time = 0};
    at += 2;
    for (int field = 3; field < 22; ++field) {
        at = std::strchr(at, ' ');
        if (at == nullptr) {
            return std::nullopt;
        }
        ++at;
    }
    found.start_time = std::strtoull(at, nullptr, 10);
    return found;
}

} // namespace

process_identity own_identity()
{
    const std::int32_t process = ::getpid();
    const auto found           = look_at(process);
    return {.process = process, .start_time = found ? found->start_time : 0};
}

bool is_running(const process_identity& process)
{
    const int saved  = errno;
    const auto found = look_at(process.process);
    errno            = saved;
    return found && found->state != 'Z' && found->state != 'X' && found->start_time == process.start_time;
}

} // namespace ucxl::softhca

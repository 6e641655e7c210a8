#include "process_identity.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <string_view>

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

// The beginning of a small file of /proc, empty if it cannot be read.
std::string_view read_small(const char* path, std::array<char, 1024>& buffer)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return {};
    }
    const ssize_t length = read(fd, buffer.data(), buffer.size());
    close(fd);
    return {buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

// FNV-1a: the identifier is random, it only has to become shorter.
std::uint64_t shorten(std::string_view text)
{
    std::uint64_t value = 0xcbf29ce484222325;
    for (const char each : text) {
        value = (value ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    }
    return value;
}

std::uint64_t this_host()
{
    static const std::uint64_t host = [] {
        std::array<char, 1024> buffer;
        const auto boot = read_small("/proc/sys/kernel/random/boot_id", buffer);
        return boot.empty() ? 0 : shorten(boot);
    }();
    return host;
}

std::uint64_t parse_number(std::string_view text)
{
    std::uint64_t number = 0;
    for (const char digit : text) {
        if (digit < '0' || digit > '9') {
            break;
        }
        number = number * 10 + static_cast<std::uint64_t>(digit - '0');
    }
    return number;
}

process_identity ask_system()
{
    struct stat name_space{};
    process_identity made{};
    made.pid        = getpid();
    made.user       = geteuid();
    made.start_time = start_time_of(made.pid);
    if (made.start_time != 0 && stat("/proc/self/ns/pid", &name_space) == 0) {
        made.pid_namespace = name_space.st_ino;
        made.host          = this_host();
    }
    return made;
}

constinit std::atomic<pid_t> known_pid{0};

} // namespace

pid_t own_pid()
{
    static const int registered = pthread_atfork(nullptr, nullptr, [] { known_pid = 0; });
    pid_t pid                   = known_pid.load(std::memory_order_relaxed);
    if (pid == 0) {
        pid = getpid();
        if (registered == 0) {
            known_pid = pid;
        }
    }
    return pid;
}

std::uint64_t start_time_of(pid_t pid)
{
    std::array<char, 32> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
    std::array<char, 1024> buffer;
    std::string_view stat = read_small(path.data(), buffer);
    // The name of the program, in parentheses, may contain anything; field 22 is the 20th behind it.
    const auto name_end = stat.rfind(')');
    if (name_end == std::string_view::npos) {
        return 0;
    }
    stat.remove_prefix(name_end + 1);
    for (int field = 0; field < 20; ++field) {
        const auto space = stat.find(' ');
        if (space == std::string_view::npos) {
            return 0;
        }
        stat.remove_prefix(space + 1);
    }
    return parse_number(stat);
}

process_identity process_identity::own()
{
    // Asked of the system again only after a fork or a change of the user: a key is unpacked for every rendezvous.
    static std::mutex& lock = *new std::mutex;
    static process_identity known{};
    const std::lock_guard guard(lock);
    if (known.pid != own_pid() || known.user != geteuid()) {
        known = ask_system();
    }
    return known;
}

bool may_share_memory(const process_identity& own, const process_identity& other)
{
    return own.host != 0 && own.host == other.host && own.pid_namespace == other.pid_namespace &&
           own.user == other.user;
}

} // namespace ucxl

#include "process.h"

#include "hash.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <format>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

using small_text = std::array<char, 1024>;

// The beginning of a small file of /proc, empty if it cannot be read. By system calls, because libsofthca.so puts
// functions of its own before those of the C library.
std::string_view read_small(const char* path, small_text& buffer)
{
    const long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return {};
    }
    const long length = syscall(SYS_read, fd, buffer.data(), buffer.size());
    syscall(SYS_close, fd);
    return {buffer.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

std::uint64_t this_host()
{
    static constinit std::atomic<std::uint64_t> known{0};
    std::uint64_t host = known.load(std::memory_order_relaxed);
    if (host == 0) {
        small_text buffer;
        const auto boot = read_small("/proc/sys/kernel/random/boot_id", buffer);
        host            = boot.empty() ? 0 : hash_text(boot);
        known.store(host, std::memory_order_relaxed);
    }
    return host;
}

std::uint64_t parse_number(std::string_view text)
{
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

process_identity ask_system()
{
    struct stat name_space{};
    process_identity identity{};
    identity.pid      = getpid();
    identity.user     = geteuid();
    const auto status = status_of_process(identity.pid);
    if (status && stat("/proc/self/ns/pid", &name_space) == 0) {
        identity.start_time    = status->start_time;
        identity.pid_namespace = name_space.st_ino;
        identity.host          = this_host();
    }
    return identity;
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

std::optional<process_status> status_of_process(pid_t pid)
{
    const int saved = errno;
    std::array<char, 32> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
    small_text buffer;
    std::string_view text = read_small(path.data(), buffer);
    errno                 = saved;
    // The name of the program, in parentheses, may contain anything. Behind it come a blank, the state (field 3) and
    // numbers; field 22 is the start time.
    const auto name_end = text.rfind(')');
    if (name_end == std::string_view::npos || text.size() - name_end < 3) {
        return std::nullopt;
    }
    text.remove_prefix(name_end + 2);
    process_status status{.state = text.front(), .start_time = 0};
    for (int field = 3; field < 22; ++field) {
        const auto blank = text.find(' ');
        if (blank == std::string_view::npos) {
            return std::nullopt;
        }
        text.remove_prefix(blank + 1);
    }
    status.start_time = parse_number(text);
    return status;
}

process_identity process_identity::own()
{
    // Asked of the system again only after a fork or a change of the user: a key is unpacked for every rendezvous. Each
    // thread asks for itself: callers hold locks, and fork would have to take one of this after all of them.
    static constinit thread_local process_identity known{};
    // And where it could not be asked, because no descriptor was free.
    if (known.pid != own_pid() || known.user != geteuid() || known.start_time == 0) {
        known = ask_system();
    }
    return known;
}

bool may_share_memory(const process_identity& own, const process_identity& other)
{
    return own.host != 0 && own.host == other.host && own.pid_namespace == other.pid_namespace &&
           own.user == other.user;
}

namespace
{

bool is_over(const process_status& status)
{
    return status.state == 'Z' || status.state == 'X';
}

bool runs(pid_t thread)
{
    const auto status = status_of_process(thread);
    return status && !is_over(*status);
}

// What getdents64(2) fills in, before the name.
struct folder_entry {
    std::uint64_t inode;
    std::int64_t next;
    std::uint16_t length; // with the name
    std::uint8_t type;
};

constexpr std::size_t name_offset = offsetof(folder_entry, type) + sizeof(folder_entry::type);

// Of one part of the listing of /proc/PID/task.
std::optional<pid_t> other_thread_in(std::span<const std::byte> listing, pid_t first)
{
    while (listing.size() > name_offset) {
        folder_entry entry;
        std::memcpy(&entry, listing.data(), sizeof(entry));
        const auto* const name = reinterpret_cast<const char*>(listing.data() + name_offset);
        const auto thread      = static_cast<pid_t>(parse_number({name, std::strlen(name)}));
        if (thread != 0 && thread != first && runs(thread)) {
            return thread;
        }
        listing = listing.subspan(entry.length);
    }
    return std::nullopt;
}

} // namespace

std::optional<pid_t> other_thread_of(pid_t pid)
{
    std::array<char, 32> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/task", pid);
    const owned_fd folder(
        static_cast<int>(syscall(SYS_openat, AT_FDCWD, path.data(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    alignas(folder_entry) std::array<std::byte, 1024> listing;
    std::optional<pid_t> found;
    while (folder && !found) {
        const long length = syscall(SYS_getdents64, folder.get(), listing.data(), listing.size());
        if (length <= 0) {
            break;
        }
        found = other_thread_in(std::span(listing).first(static_cast<std::size_t>(length)), pid);
    }
    return found;
}

watched_process::watched_process(pid_t pid)
    : _pid(pid), _pidfd(owned_fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))))
{
    if (const auto status = status_of_process(pid)) {
        _start_time = status->start_time;
    }
}

namespace
{

// Whether the file is readable now; nothing if the system does not tell. A signal that comes meanwhile is no answer.
std::optional<bool> is_readable(int fd)
{
    pollfd file{fd, POLLIN, 0};
    int found = 0;
    do {
        found = poll(&file, 1, 0);
    } while (found < 0 && errno == EINTR);
    return found < 0 ? std::nullopt : std::optional(found > 0);
}

} // namespace

// Its first thread may end before the others.
bool watched_process::is_that_of(const process_status& status) const
{
    const bool is_another = _start_time && status.start_time != *_start_time;
    return !is_another && (!is_over(status) || other_thread_of(_pid));
}

bool watched_process::is_alive() const
{
    if (_pidfd.is_there()) {
        return is_readable(_pidfd.get()) == false;
    }
    const auto status = _pidfd && _start_time ? status_of_process(_pid) : std::nullopt;
    return status && is_that_of(*status);
}

// Another file may have the number of the descriptor, and be readable. So /proc has to agree, and is asked where the
// descriptor is not there. It may be that no file can be opened now.
bool watched_process::has_ended() const
{
    const bool is_there = _pidfd.is_there();
    if (!_pidfd || (is_there && is_readable(_pidfd.get()) != true)) {
        return false;
    }
    if (const auto status = status_of_process(_pid)) {
        return !is_that_of(*status);
    }
    return is_there || (kill(_pid, 0) != 0 && errno == ESRCH);
}

result<watched_memory> watched_memory::open(pid_t pid)
{
    std::array<char, 32> path;
    std::snprintf(path.data(), path.size(), "/proc/%d/mem", pid);
    owned_fd file(::open(path.data(), O_RDONLY | O_CLOEXEC));
    if (!file) {
        return fail(errc::invalid_param, std::format("{}: {}", path.data(), std::strerror(errno)));
    }
    return watched_memory(std::move(file));
}

// The file stays that of the memory for which it was opened, and is empty when that has ended. Of memory that is there,
// the first page is none: it cannot be read, which costs less than reading one. Where it can, another file may have the
// number of the descriptor.
bool watched_memory::has_ended() const noexcept
{
    std::byte byte;
    const ssize_t count = pread(_file.get(), &byte, 1, 0);
    const bool is_none  = count < 0 && errno == EIO;
    return !is_none && (count != 1 || !_file.is_there());
}

} // namespace ucxl

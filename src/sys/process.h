// Processes: which one, of which user, on which host; and whether it still runs.
//
// A process number alone may come to mean another process, so a process is its number and the time it was started.
//
// Example: if (may_share_memory(process_identity::own(), key.owner)) { open /proc/PID/fd/N }
#pragma once

#include "error.h"
#include "kept_fd.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <sys/types.h>

namespace ucxl
{

struct process_identity {
    std::uint64_t host;          // of this boot of the machine; 0: unknown
    std::uint64_t pid_namespace; // in which `pid` counts
    std::uint64_t start_time;    // in clock ticks since boot
    std::int32_t pid;
    std::uint32_t user;

    bool operator==(const process_identity&) const = default;

    // Of the calling process; host is 0 where /proc does not tell.
    static process_identity own();
};

// getpid() without a system call, for paths that every message takes. A child made by fork() has its own; one made by
// clone() alone would take itself for its parent.
pid_t own_pid();

// Same host, name space and user. A process shares with itself, too.
bool may_share_memory(const process_identity& own, const process_identity& other);

// Fields of /proc/PID/stat (proc_pid_stat(5)).
struct process_status {
    char state;               // 'Z' and 'X': it has ended
    std::uint64_t start_time; // in clock ticks since boot
};

// Of any process of this name space; none if there is none of that number. Keeps errno.
std::optional<process_status> status_of_process(pid_t pid);

// A thread of the process that runs, other than the first one, which may end before the others: then the kernel knows
// nothing of the process's memory by the process's own number. None if there is no other thread. Allocates nothing.
std::optional<pid_t> other_thread_of(pid_t pid);

// A process of this name space, to be asked whether it has ended.
//
// Example: const watched_process peer(pid); if (peer.start_time() == wanted && peer.is_alive()) {...}
class watched_process
{
public:
    // The process that has the number now, if any.
    explicit watched_process(pid_t pid);

    // False also where the kernel cannot tell: before Linux 5.3. If the program has closed the descriptor, /proc is
    // asked, which takes longer.
    bool is_alive() const;
    // False also where the kernel could not tell from the beginning.
    bool has_ended() const;
    // Nothing if it was not there.
    std::optional<std::uint64_t> start_time() const { return _start_time; }
    // Whether the kernel could tell in the beginning.
    bool is_watched() const { return static_cast<bool>(_pidfd); }

private:
    bool is_that_of(const process_status& status) const; // and runs

    pid_t _pid;
    kept_fd _pidfd;
    std::optional<std::uint64_t> _start_time;
};

// The memory that a process had at one moment. It ends when the process does, and also when that becomes another
// program (execve(2)), which keeps number and start time.
//
// Example: const auto memory = UCXL_TRY(watched_memory::open(pid)); read(...); if (memory.has_ended()) { return gone; }
class watched_memory
{
public:
    // Errors: invalid_param (there is no such process, or it may not be inspected).
    static result<watched_memory> open(pid_t pid);

    // True also if the kernel does not tell. A system call.
    bool has_ended() const noexcept;
    // Whether the kernel can tell: the program may have closed the descriptor.
    bool is_watched() const noexcept { return _file.is_there(); }

private:
    explicit watched_memory(owned_fd file) : _file(std::move(file)) {}

    kept_fd _file;
};

} // namespace ucxl

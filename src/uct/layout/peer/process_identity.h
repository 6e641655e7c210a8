// Which process, of which user, on which host: enough to tell whether two processes can open each other's files, and
// whether a process number still means the process that it meant.
//
// Example: if (may_share_memory(process_identity::own(), from_the_key.owner)) { open /proc/PID/fd/N }
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace ucxl
{

struct process_identity {
    std::uint64_t host;          // of this boot of the machine; 0: unknown
    std::uint64_t pid_namespace; // in which `pid` counts
    std::uint64_t start_time;    // of the process, in clock ticks since boot
    std::int32_t pid;
    std::uint32_t user;

    bool operator==(const process_identity&) const = default;

    // Of the calling process; host is 0 where /proc does not say.
    static process_identity own();
};

// getpid() without a system call, for paths that are taken for every message. A child made by fork() has its own; one
// made by clone() alone would take itself for its parent.
pid_t own_pid();

// Same host, name space and user. A process shares with itself, too.
bool may_share_memory(const process_identity& own, const process_identity& other);

// Of any process of this name space, 0 if there is none of that number.
std::uint64_t start_time_of(pid_t pid);

} // namespace ucxl

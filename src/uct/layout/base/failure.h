// Operations on windows that were not done. Each one is counted, logged (so many a second) and told to whoever watches,
// in the process that refused it, and where a peer refused it, in the process that started it, too.
//
// Stock UCX gives some operations no way to fail: they end with UCS_OK although nothing was moved. Such a failure is
// `silent`, and all that tells of it is here. docs/limits.md lists them with the lines of UCX that make them so.
//
// Example: report_failure({failure_kind::read, "lay_copy", address, length, "are not inside a live window", true})
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace ucxl
{

enum class failure_kind : std::uint8_t {
    read,          // from a window of this process, by this process: zeros came instead
    write,         // to a window of this process, by this process: the bytes were dropped
    peer_read,     // by a peer, from memory of this process
    peer_write,    // by a peer, to memory of this process
    peer_atomic,   // by a peer, on memory of this process
    remote_read,   // by this process, from a window of a peer
    remote_write,  // by this process, to a window of a peer
    remote_atomic, // by this process, on a window of a peer
    datatype,      // a layout datatype that could not be sent or received
};

inline constexpr std::size_t num_failure_kinds = 9;

struct failure {
    failure_kind kind;
    const char* operation; // who refused it: "lay_copy"
    std::uint64_t address; // in this process, or in the peer if that is where the operation went
    std::uint64_t length;  // bytes
    const char* reason;    // follows "N bytes at ADDRESS"
    bool silent;           // nothing else tells the initiator
};

// The callback may unmap windows, so not within a reader section. Any thread. No exception.
void report_failure(const failure& failure) noexcept;

struct failure_counts {
    std::array<std::uint64_t, num_failure_kinds> all{}; // by kind
    std::array<std::uint64_t, num_failure_kinds> silent{};
};

failure_counts count_failures();
// Of another process of this user on this host. False if there is no such process, or it never had this library.
bool count_failures_of(pid_t pid, failure_counts& counts);

// At most one; null: none. It runs in the thread that found the failure, within a call of UCX or of this library, and
// may still be running when this returns.
using failure_callback = void (*)(const failure& failure, void* arg);
void watch_failures(failure_callback callback, void* arg);

// Shows the counts in UCX's virtual file system, once.
void publish_failure_counts();

} // namespace ucxl

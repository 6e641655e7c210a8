// Failed operations on windows. The process that refused one counts it, logs it (with a limit per second) and calls the
// failure callback. If a peer refused it, the process that started it does the same.
//
// Stock UCX gives some operations no way to fail: they end with UCS_OK although they moved nothing. Such a failure is
// `silent`: only this code reports it. docs/limits.md lists them with the lines of UCX.
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
    read,          // by this process, from a window of this process: it read zeros
    write,         // by this process, to a window of this process: the bytes were dropped
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
    const char* operation; // who refused it, such as "lay_copy"
    std::uint64_t address; // in this process, or in the peer that the operation went to
    std::uint64_t length;  // bytes
    const char* reason;    // follows "N bytes at ADDRESS"
    bool silent;           // the initiator learns of it from nothing else
};

// The callback may unmap windows, so no reader section may be open. Any thread. Throws nothing.
void report_failure(const failure& failure) noexcept;

struct failure_counts {
    std::array<std::uint64_t, num_failure_kinds> all{}; // by kind
    std::array<std::uint64_t, num_failure_kinds> silent{};
};

failure_counts count_failures();
// The counts of another process of this user on this host. Returns false if there is no such process, or if it has
// never loaded this library.
bool count_failures_of(pid_t pid, failure_counts& counts);

// Sets the one callback; null removes it. The callback runs in the thread that found the failure, inside a call of UCX
// or of this library. It may still be running when this returns.
using failure_callback = void (*)(const failure& failure, void* arg);
void watch_failures(failure_callback callback, void* arg);

// Shows the counts in UCX's virtual file system. Does so once.
void publish_failure_counts();

} // namespace ucxl

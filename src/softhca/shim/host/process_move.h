// Copies runs of memory between processes, gathered into few system calls. linux_host.h translates pieces to runs.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "softhca/core/arena/host.h"

namespace ucxl::softhca
{

// A run of memory in this or another process.
struct memory_run {
    pid_t process          = 0; // 0: this process
    std::uintptr_t address = 0;
};

// Copies runs in the order they are added. Runs in the same direction between the same processes are collected and
// copied by one call, so a later add() or finish() may report the failure; runs after the failed one are not copied.
// Adjacent runs in the other process are merged, because looking up a short run there costs more than copying it.
class process_mover
{
public:
    // False once anything has failed.
    bool add(const memory_run& to, const memory_run& from, std::size_t length);
    move_status finish();

    // The process that was gone.
    pid_t missing() const { return _process; }

private:
    enum class direction : std::uint8_t { none, write, read };

    bool add_waiting(direction way, pid_t process, std::uintptr_t ours, std::uintptr_t theirs, std::size_t length);
    bool copy_own(std::uintptr_t to, std::uintptr_t from, std::size_t length);
    bool copy_foreign(const memory_run& to, const memory_run& from, std::size_t length);
    bool flush();
    bool failed_call(int error, std::uintptr_t ours, std::uintptr_t theirs);

    void add_theirs(std::uintptr_t address, std::size_t length);

    static constexpr std::size_t most_ours   = 256;
    static constexpr std::size_t most_theirs = 64;

    direction _way            = direction::none;
    pid_t _process            = 0;
    move_status _status       = move_status::ok;
    std::size_t _ours_count   = 0;
    std::size_t _theirs_count = 0;
    std::array<iovec, most_ours> _ours;
    std::array<iovec, most_theirs> _theirs;
};

} // namespace ucxl::softhca

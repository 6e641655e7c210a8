// Copies between processes, run by run, gathered to few system calls. For linux_host.h, which knows what pieces are.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "softhca/core/host.h"

namespace ucxl::softhca
{

// A run of memory: of this process, or at an address of another.
struct memory_run {
    pid_t process          = 0; // 0: this one
    std::uintptr_t address = 0;
};

// Copies runs in the order they are added. Runs that go the same way between the same processes wait for each other and
// are then copied by one call; so a failure is reported by a later add() or by finish(), and what was added after the
// run that failed is not copied. Runs that lie one behind the other in the other process are looked up there as one,
// which is most of the work for a short run; they are still copied one after the other.
class process_mover
{
public:
    // False once anything has failed.
    bool add(const memory_run& to, const memory_run& from, std::size_t length);
    move_status finish();

    // The one that was gone.
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

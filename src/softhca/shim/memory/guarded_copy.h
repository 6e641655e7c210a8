// A copy inside this process that survives memory which is not there: a key may cover memory that the program has
// unmapped since. A fault during the copy ends the copy, not the process.
//
// Needs the handler of fault_signals.h; threads must not block SIGSEGV and SIGBUS (the wrappers of sigprocmask see to
// it).
#pragma once

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace ucxl::softhca
{

enum class copy_status : std::uint8_t {
    ok,
    fault_to,
    fault_from,
};

// On a fault some bytes may have been copied. The ranges must not overlap.
copy_status guarded_copy(void* to, const void* from, std::size_t length) noexcept;

// For the signal handler: does not return where the fault is that of a copy of this thread. Signals are then blocked as
// they were at the fault, whatever the handler was installed with, or by another one that called it.
void leave_guarded_copy(int signal, const siginfo_t& fault, const void* context) noexcept;

} // namespace ucxl::softhca

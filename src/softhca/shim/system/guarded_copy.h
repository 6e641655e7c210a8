// A copy inside this process that survives missing memory: a key may cover memory that the program has unmapped. A
// fault ends the copy, not the process.
//
// Needs the handlers of fault_signals.h. Threads must not block SIGSEGV and SIGBUS; the wrappers of sigprocmask ensure
// that.
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

// For the signal handler: does not return when the fault belongs to a copy of this thread. The signal mask is then that
// of the interrupted code, whatever handler called this.
void leave_guarded_copy(int signal, const siginfo_t& fault, const void* context) noexcept;

} // namespace ucxl::softhca

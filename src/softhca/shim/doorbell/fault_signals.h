// SIGSEGV and SIGBUS of a process: first ours (a copy that met missing memory, a store to a doorbell page), then
// whatever the program or its libraries have set for them, as the kernel would have called it.
//
// Handlers that others set are kept aside, so that they do not displace ours: the wrappers of sigaction() and the like
// come here. Before install() everything goes to the C library.
#pragma once

#include <csignal>

namespace ucxl::softhca
{

// Whether the fault was ours and the thread can go on. Called in the handler, on the thread's stack.
using fault_taker = bool (*)(int signal, siginfo_t& fault, void* context);

// Sets our handlers, for good; again where somebody displaced them by a system call. Cheap when all is in place.
void install_fault_handlers(fault_taker taker);
// The same for SIGTRAP.
void install_step_handler();

// What the wrapper of sigaction() does.
int change_action(int signal, const struct sigaction* wanted, struct sigaction* before);

// A signal mask as a program wants it, without the signals that must get through: where the signal of a fault is
// blocked the kernel ends the process. Always, as a thread may set its mask before the device is opened.
sigset_t without_fault_signals(const sigset_t& wanted);

} // namespace ucxl::softhca

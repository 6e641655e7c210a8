// SIGSEGV, SIGBUS and SIGTRAP of a process: first ours (a copy that met missing memory, a store to a doorbell page),
// then the program's handlers, called as the kernel would call them.
//
// Handlers of the program are kept here, so that they do not replace ours: the wrappers of sigaction() and similar
// functions call change_action(). Before install_fault_handlers() everything goes to the C library.
#pragma once

#include <csignal>

namespace ucxl::softhca
{

// Returns whether the fault was ours and the thread can continue. Called in the handler, on the thread's stack.
using fault_taker = bool (*)(int signal, siginfo_t& fault, void* context);

// Installs our handlers permanently, and again when somebody replaced them by a system call. Cheap when they are in
// place.
void install_fault_handlers(fault_taker taker);
// The same for SIGTRAP.
void install_step_handler();

// The implementation of the sigaction() wrapper.
int change_action(int signal, const struct sigaction* wanted, struct sigaction* before);

// The program's signal mask without the fault signals: the kernel ends the process when the signal of a fault is
// blocked. Applies always, because a thread may set its mask before the device is opened.
sigset_t without_fault_signals(const sigset_t& wanted);

} // namespace ucxl::softhca

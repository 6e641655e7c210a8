// Calls that would take a fault signal from us.
#include "export.h"
#include "softhca/shim/system/fault_signals.h"
#include "softhca/shim/system/libc_functions.h"

#include <cerrno>

using namespace ucxl::softhca;

namespace
{

// The wanted mask without the fault signals. `room` holds the changed copy.
const sigset_t* less(int how, const sigset_t* wanted, sigset_t& room)
{
    if (wanted == nullptr || how == SIG_UNBLOCK) {
        return wanted;
    }
    room = without_fault_signals(*wanted);
    return &room;
}

__sighandler_t change_handler(int signal, __sighandler_t handler, int flags)
{
    struct sigaction wanted = {};
    struct sigaction before = {};
    wanted.sa_handler       = handler;
    wanted.sa_flags         = flags;
    sigemptyset(&wanted.sa_mask);
    return change_action(signal, &wanted, &before) == 0 ? before.sa_handler : SIG_ERR;
}

bool is_fault_signal(int signal)
{
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGTRAP;
}

} // namespace

SOFTHCA_INTERPOSED int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) noexcept
{
    return change_action(signal, wanted, before);
}

SOFTHCA_INTERPOSED __sighandler_t signal(int number, __sighandler_t handler) noexcept
{
    return is_fault_signal(number) ? change_handler(number, handler, SA_RESTART) : libc().signal(number, handler);
}

SOFTHCA_INTERPOSED __sighandler_t sysv_signal(int number, __sighandler_t handler) noexcept
{
    return is_fault_signal(number) ? change_handler(number, handler, SA_RESETHAND | SA_NODEFER)
                                   : libc().sysv_signal(number, handler);
}

SOFTHCA_INTERPOSED int sigprocmask(int how, const sigset_t* wanted, sigset_t* before) noexcept
{
    sigset_t room;
    return libc().sigprocmask(how, less(how, wanted, room), before);
}

SOFTHCA_INTERPOSED int pthread_sigmask(int how, const sigset_t* wanted, sigset_t* before) noexcept
{
    sigset_t room;
    return libc().pthread_sigmask(how, less(how, wanted, room), before);
}

#include "fault_signals.h"

#include "guarded_copy.h"
#include "libc_functions.h"

#include <atomic>
#include <cerrno>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace ucxl::softhca
{
namespace
{

// The program's action for one of our signals. Handlers read it and may call sigaction(), so it is replaced as a whole
// and without a lock. An old one is reused only after so many others that no handler still reads it.
struct wanted_action {
    struct sigaction action   = {};
    std::atomic<bool> used_up = false; // SA_RESETHAND
};

constexpr std::size_t kept_actions = 256;
wanted_action actions[kept_actions];
constinit std::atomic<std::size_t> next_action = 0;

wanted_action* keep(const struct sigaction& action)
{
    wanted_action& kept = actions[next_action.fetch_add(1) % kept_actions];
    kept.action         = action;
    kept.used_up.store(false);
    return &kept;
}

struct signal_slot {
    int number;
    std::atomic<wanted_action*> wanted = nullptr; // null: not ours (yet)
};

constinit signal_slot slots[]            = {{SIGSEGV}, {SIGBUS}, {SIGTRAP}};
constinit std::atomic<fault_taker> taker = nullptr;

signal_slot* slot_of(int number)
{
    for (signal_slot& slot : slots) {
        if (slot.number == number) {
            return &slot;
        }
    }
    return nullptr;
}

bool sent_by_a_process(const siginfo_t& fault)
{
    return fault.si_code <= 0;
}

// Does what happens without us: the fault repeats, or the signal is sent again, and the kernel ends the process.
void end_by_default(int number, const siginfo_t& fault)
{
    struct sigaction plain = {};
    plain.sa_handler       = SIG_DFL;
    libc().sigaction(number, &plain, nullptr);
    if (sent_by_a_process(fault)) {
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
    }
}

void call_foreign(int number, siginfo_t* fault, void* context, wanted_action& wanted)
{
    const struct sigaction& action = wanted.action;
    const bool reset               = (action.sa_flags & SA_RESETHAND) != 0;
    if ((action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN && sent_by_a_process(*fault)) {
        return;
    }
    if (((action.sa_flags & SA_SIGINFO) == 0 && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) ||
        (reset && wanted.used_up.exchange(true))) {
        end_by_default(number, *fault);
        return;
    }
    sigset_t blocked = action.sa_mask;
    if ((action.sa_flags & SA_NODEFER) == 0) {
        sigaddset(&blocked, number);
    }
    sigset_t before;
    libc().pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if ((action.sa_flags & SA_SIGINFO) != 0) {
        action.sa_sigaction(number, fault, context);
    } else {
        action.sa_handler(number);
    }
    libc().pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_fault(int number, siginfo_t* fault, void* context)
{
    const int saved_errno = errno;
    leave_guarded_copy(number, *fault, context);
    const fault_taker take = taker.load(std::memory_order_acquire);
    if (take == nullptr || !take(number, *fault, context)) {
        wanted_action* const wanted = slot_of(number)->wanted.load(std::memory_order_acquire);
        call_foreign(number, fault, context, *wanted);
    }
    errno = saved_errno;
}

// Our handler never runs on the alternate stack: the model runs in it, and such stacks are small. It blocks no signals:
// copies of the model may fault in turn, and leave by a jump.
struct sigaction our_action()
{
    struct sigaction ours = {};
    ours.sa_sigaction     = on_fault;
    ours.sa_flags         = SA_SIGINFO | SA_NODEFER | SA_RESTART;
    sigemptyset(&ours.sa_mask);
    return ours;
}

bool is_ours(const struct sigaction& action)
{
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

// Several threads may do this at once: then the program's action is the one that the first of them found, or what the
// program has set since. A thread returns with our handler in place, because its next instruction may need it.
void install(signal_slot& slot)
{
    wanted_action* before = slot.wanted.load(std::memory_order_acquire);
    struct sigaction current;
    if (libc().sigaction(slot.number, nullptr, &current) == 0 && !is_ours(current)) {
        slot.wanted.compare_exchange_strong(before, keep(current), std::memory_order_acq_rel);
        const struct sigaction ours = our_action();
        libc().sigaction(slot.number, &ours, nullptr);
    }
}

} // namespace

void install_fault_handlers(fault_taker new_taker)
{
    taker.store(new_taker, std::memory_order_release);
    install(*slot_of(SIGSEGV));
    install(*slot_of(SIGBUS));
    // The mask may come from before this process started; a blocked fault would end the process.
    sigset_t needed;
    sigemptyset(&needed);
    sigaddset(&needed, SIGSEGV);
    sigaddset(&needed, SIGBUS);
    libc().pthread_sigmask(SIG_UNBLOCK, &needed, nullptr);
}

void install_step_handler()
{
    install(*slot_of(SIGTRAP));
    sigset_t needed;
    sigemptyset(&needed);
    sigaddset(&needed, SIGTRAP);
    libc().pthread_sigmask(SIG_UNBLOCK, &needed, nullptr);
}

int change_action(int number, const struct sigaction* wanted, struct sigaction* before)
{
    signal_slot* const slot = slot_of(number);
    if (slot == nullptr || slot->wanted.load(std::memory_order_acquire) == nullptr) {
        if (wanted == nullptr) {
            return libc().sigaction(number, wanted, before);
        }
        struct sigaction passing = *wanted;
        passing.sa_mask          = without_fault_signals(wanted->sa_mask);
        return libc().sigaction(number, &passing, before);
    }
    const struct sigaction old = slot->wanted.load(std::memory_order_acquire)->action;
    if (wanted != nullptr) {
        slot->wanted.store(keep(*wanted), std::memory_order_release);
    }
    if (before != nullptr) {
        *before = old;
    }
    return 0;
}

sigset_t without_fault_signals(const sigset_t& wanted)
{
    sigset_t less = wanted;
    sigdelset(&less, SIGSEGV);
    sigdelset(&less, SIGBUS);
    if (slot_of(SIGTRAP)->wanted.load(std::memory_order_acquire) != nullptr) {
        sigdelset(&less, SIGTRAP);
    }
    return less;
}

} // namespace ucxl::softhca

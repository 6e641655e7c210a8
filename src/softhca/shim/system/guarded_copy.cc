#include "guarded_copy.h"

#include "libc_functions.h"

#include <atomic>
#include <csetjmp>
#include <cstring>
#include <ucontext.h>

namespace ucxl::softhca
{
namespace
{

struct copy_in_progress {
    std::uintptr_t to;
    std::uintptr_t from;
    std::size_t length;
    jmp_buf leave;
};

enum way_back : int {
    entered = 0,
    left_writing,
    left_reading,
};

// The TLS model with fixed offsets: the handler must not allocate thread-local memory.
[[gnu::tls_model("initial-exec")]] constinit thread_local copy_in_progress* current = nullptr;

bool inside(std::uintptr_t address, std::uintptr_t first, std::size_t length)
{
    return address - first < length;
}

[[noreturn]] void leave(copy_in_progress& copy, way_back how, const void* context)
{
    const sigset_t& at_the_fault = static_cast<const ucontext_t*>(context)->uc_sigmask;
    libc().pthread_sigmask(SIG_SETMASK, &at_the_fault, nullptr);
    longjmp(copy.leave, how); // ThreadSanitizer does not know _longjmp
}

// A non-canonical address: the CPU reports its fault without an address.
bool impossible(std::uintptr_t first, std::size_t length)
{
    const std::uintptr_t last = first + length - 1;
    return last < first || last >> 47 != 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers' memcpy reads shadow memory, which invalid addresses do not have.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] void copy_bytes(void* to, const void* from, std::size_t length)
{
#if defined(__x86_64__)
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(length) : : "memory");
#else
    auto* const target       = static_cast<volatile std::byte*>(to);
    const auto* const source = static_cast<const volatile std::byte*>(from);
    for (std::size_t i = 0; i < length; ++i) {
        target[i] = source[i];
    }
#endif
}
#else
void copy_bytes(void* to, const void* from, std::size_t length)
{
    switch (length) { // a reader may poll on it: one store
    case 1:
        std::memcpy(to, from, 1);
        break;
    case 4:
        std::memcpy(to, from, 4);
        break;
    case 8:
        std::memcpy(to, from, 8);
        break;
    default:
        std::memcpy(to, from, length);
        break;
    }
}
#endif

} // namespace

copy_status guarded_copy(void* to, const void* from, std::size_t length) noexcept
{
    if (length == 0) {
        return copy_status::ok;
    }
    copy_in_progress copy;
    copy.to                       = reinterpret_cast<std::uintptr_t>(to);
    copy.from                     = reinterpret_cast<std::uintptr_t>(from);
    copy.length                   = length;
    copy_in_progress* const outer = current; // not null in a signal handler that interrupted a copy
    switch (_setjmp(copy.leave)) {
    case entered:
        break;
    case left_writing:
        current = outer;
        return copy_status::fault_to;
    default:
        current = outer;
        return copy_status::fault_from;
    }
    current = &copy;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    copy_bytes(to, from, length);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    current = outer;
    return copy_status::ok;
}

void leave_guarded_copy(int signal, const siginfo_t& fault, const void* context) noexcept
{
    if (current == nullptr || (signal != SIGSEGV && signal != SIGBUS) || fault.si_code <= 0) {
        return;
    }
    copy_in_progress& copy = *current;
    const auto address     = reinterpret_cast<std::uintptr_t>(fault.si_addr);
    if (signal == SIGSEGV && fault.si_code == SI_KERNEL) {
        if (impossible(copy.to, copy.length)) {
            leave(copy, left_writing, context);
        }
        if (impossible(copy.from, copy.length)) {
            leave(copy, left_reading, context);
        }
        return;
    }
    if (inside(address, copy.to, copy.length)) {
        leave(copy, left_writing, context);
    }
    if (inside(address, copy.from, copy.length)) {
        leave(copy, left_reading, context);
    }
}

} // namespace ucxl::softhca

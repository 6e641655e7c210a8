#include "forking_thread.h"

#include "address_range.h"
#include "kernel_call.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <utility>

#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace ucxl::heap
{

namespace
{

// Of the stack: what fork() and our handlers call from here on (some 500 bytes, 3 KB if a line is written), and their
// frames above this one (some 200). Not much more: there may be another thread's stack.
constexpr std::uintptr_t below_frame = std::uintptr_t{4} << 10;
constexpr std::uintptr_t above_frame = std::uintptr_t{1} << 10;
// Around errno: the C library's variables of the thread.
constexpr std::uintptr_t below_errno = 4096;
constexpr std::uintptr_t above_errno = 512;

std::size_t record_length = 4096; // more than in any release

// Three mappings of two parts, which are longer only where a library has many variables of threads.
constexpr std::size_t room_length = std::size_t{256} << 10;

struct addresses {
    std::uintptr_t start;
    std::uintptr_t end;

    bool overlap(const addresses& other) const { return start < other.end && other.start < end; }
};

std::uint64_t replace_signal_mask(std::uint64_t mask)
{
    std::uint64_t before = 0;
    call(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &before, sizeof(mask));
    return before;
}

// By an operation of the kernel that leaves the word as it is, whoever else writes it.
bool is_writable(std::uintptr_t address)
{
    static std::uint32_t nobody_waits = 0;
    constexpr int wake                = FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG;
    constexpr int or_nothing          = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, -2048);
    return call(SYS_futex, &nobody_waits, wake, 0, 0, address, or_nothing) != -1 || errno != EFAULT;
}

// The pages from `first` to `end` that are in the piece of `inner` and can be written: below its stack a program may
// have one that is protected.
addresses pages_around(const address_range& range, std::uintptr_t inner, std::uintptr_t first, std::uintptr_t end)
{
    const auto page        = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto piece       = range.shared_piece_of(reinterpret_cast<std::byte*>(inner));
    const auto piece_start = reinterpret_cast<std::uintptr_t>(piece.data());
    if (piece.empty()) {
        return {};
    }
    first = std::max(first, piece_start);
    end   = std::min(end, piece_start + piece.size());
    addresses found{.start = inner & ~(page - 1), .end = (inner | (page - 1)) + 1};
    while (found.start > first && is_writable(found.start - page)) {
        found.start -= page;
    }
    while (found.end < end && is_writable(found.end)) {
        found.end += page;
    }
    return found;
}

// Who joins this thread waits for a word of its record to change, which is its number until then. The kernel knows the
// word by its memory, so it must learn that those who began to wait since the exchange wait for another one. To wake
// them would not do: they would wait again at once, before the memory is exchanged.
void move_who_waits_for_end(const std::byte* record, const std::byte* end, const std::byte* to)
{
    const auto number           = static_cast<pid_t>(call(SYS_gettid));
    const auto* const new_words = reinterpret_cast<const pid_t*>(to);
    const auto* const words     = reinterpret_cast<const pid_t*>(record);
    for (std::ptrdiff_t i = 0; words + i < reinterpret_cast<const pid_t*>(end); ++i) {
        if (words[i] == number) {
            call(SYS_futex, words + i, FUTEX_CMP_REQUEUE, 0, INT_MAX, new_words + i, number);
        }
    }
}

std::byte* map_memory(std::size_t length)
{
    return to_memory(
        call(SYS_mmap, nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
}

// No function can exchange the memory of its own stack.
void run_on_other_stack(void (*work)())
{
    alignas(64) static std::byte stack[std::size_t{32} << 10];
    static ucontext_t here, there; // of several KB on some processors
    if (getcontext(&there) != 0) {
        return;
    }
    there.uc_stack.ss_sp   = stack;
    there.uc_stack.ss_size = sizeof(stack);
    there.uc_link          = &here;
    makecontext(&there, work, 0);
    swapcontext(&here, &there);
}

// For `work`, which has no argument. One thread forks at a time.
forking_thread* current = nullptr;

} // namespace

// By what the C library tells debuggers (thread_db.h).
void forking_thread::learn_record_length()
{
    if (const void* const length = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread")) {
        record_length = *static_cast<const std::uint32_t*>(length);
    }
}

void forking_thread::keep_room()
{
    if (_room == nullptr) {
        _room = map_memory(room_length);
    }
}

void forking_thread::leave_room()
{
    if (_room != nullptr) {
        call(SYS_munmap, _room, room_length);
        _room = nullptr;
    }
}

bool forking_thread::make_private(const address_range& range)
{
    const auto frame     = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    const auto record    = static_cast<std::uintptr_t>(pthread_self());
    const auto variables = reinterpret_cast<std::uintptr_t>(&errno);
    addresses lower      = pages_around(range, frame, frame - below_frame, frame + above_frame);
    addresses upper      = pages_around(range, record, std::min(record, variables) - below_errno,
                                        std::max(record + record_length, variables + above_errno));
    if (lower.overlap(upper)) {
        lower = {std::min(lower.start, upper.start), std::max(lower.end, upper.end)};
        upper = {};
    } else if (upper.start < lower.start) {
        std::swap(lower, upper);
    }
    if (lower.start != lower.end || upper.start != upper.end) {
        leave_room();
    }
    add(lower.start, lower.end);
    add(upper.start, upper.end);
    if (_num_parts != 0) {
        _signals = replace_signal_mask(UINT64_MAX); // their handlers would use the stack
        current  = this;
        run_on_other_stack([] { current->exchange(); });
    }
    const bool is_done = std::all_of(_parts, _parts + _num_parts, [](const part& each) { return each.is_private; });
    if (!is_done) {
        share_again();
    }
    return is_done;
}

void forking_thread::add(std::uintptr_t start, std::uintptr_t end)
{
    const std::size_t length = end - start;
    if (length == 0) {
        return;
    }
    part& added = _parts[_num_parts++];
    added       = {.start      = reinterpret_cast<std::byte*>(start),
                   .length     = length,
                   .as_it_was  = map_memory(length),
                   .to_be_here = map_memory(length),
                   // The program may have closed the file, which this does not need.
                   .shared = to_memory(call(SYS_mremap, start, std::size_t{0}, length, MREMAP_MAYMOVE))};
}

void forking_thread::exchange()
{
    for (unsigned i = 0; i < _num_parts; ++i) {
        part& each = _parts[i];
        if (each.as_it_was == nullptr || each.to_be_here == nullptr || each.shared == nullptr) {
            continue;
        }
        std::memcpy(each.to_be_here, each.start, each.length);
        std::memcpy(each.as_it_was, each.to_be_here, each.length);
        each.is_private = move(each.to_be_here, each);
    }
}

// Peers may have written to the memory meanwhile: only what this process has changed goes there.
void forking_thread::exchange_back()
{
    const auto page          = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const auto* const record = reinterpret_cast<const std::byte*>(pthread_self());
    for (unsigned i = 0; i < _num_parts; ++i) {
        part& each                 = _parts[i];
        const std::byte* const end = each.start + each.length;
        if (!each.is_private) {
            continue;
        }
        for (std::size_t at = 0; at < each.length; at += page) {
            if (std::memcmp(each.as_it_was + at, each.start + at, page) != 0) {
                std::memcpy(each.shared + at, each.start + at, page);
            }
        }
        if (record >= each.start && record < end) {
            move_who_waits_for_end(record, std::min(end, record + record_length), each.shared + (record - each.start));
        }
        move(each.shared, each);
    }
}

// Then the memory is no longer at its old address, where other threads may map something.
bool forking_thread::move(std::byte*& memory, const part& to)
{
    if (call(SYS_mremap, memory, to.length, to.length, MREMAP_MAYMOVE | MREMAP_FIXED, to.start) == -1) {
        return false;
    }
    memory = nullptr;
    return true;
}

void forking_thread::share_again()
{
    if (_num_parts != 0) {
        run_on_other_stack([] { current->exchange_back(); });
        release();
    }
}

void forking_thread::release()
{
    if (_num_parts == 0) {
        return;
    }
    for (unsigned i = 0; i < _num_parts; ++i) {
        for (std::byte* const each : {_parts[i].as_it_was, _parts[i].to_be_here, _parts[i].shared}) {
            if (each != nullptr) {
                call(SYS_munmap, each, _parts[i].length);
            }
        }
    }
    _num_parts = 0;
    keep_room();
    replace_signal_mask(_signals);
}

} // namespace ucxl::heap

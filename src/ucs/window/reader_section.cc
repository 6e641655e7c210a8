#include "reader_section.h"

#include <chrono>
#include <climits>
#include <mutex>
#include <optional>
#include <thread>

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucxl
{

namespace
{

// Never destroyed, because threads may end after the static objects of this library.
std::mutex& list_lock()
{
    static std::mutex& lock = *new std::mutex;
    return lock;
}

detail::reader_slot* all_slots = nullptr;

bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

// Whether a process can interrupt its own threads here. Where it cannot, or where a tool could not know what the
// interruption does, sections are shared from the beginning.
bool can_interrupt_readers()
{
#ifdef __SANITIZE_THREAD__
    return false;
#else
    constexpr long needed = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED | MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    const long known      = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    return known > 0 && (known & needed) == needed;
#endif
}

// The right to do so takes 5 ms in a process that has threads already, and UCX starts one when it is loaded. So it is
// not asked for before it is needed, which it never is in most processes.
bool interrupt_readers()
{
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

// Called under the lock of the list before a second thread opens a section, and before the first time that a thread
// waits for another one. When it returns, the sections that are open are visible to this thread, and so will be all
// that open from now on. Each running thread passes a full barrier during the call. A thread that has stored the start
// of its section before that point has it visible; one that has not will load the flag after it, and find it set.
void become_shared()
{
    if (detail::has_several_readers.exchange(true)) {
        return;
    }
    if (!interrupt_readers()) {
        // Something does not let it, such as a filter of system calls. No store stays in a processor that long.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

} // namespace

namespace detail
{

thread_local constinit reader_slot* this_reader = nullptr;
std::atomic<std::uint64_t> reader_epoch{1};
std::atomic<bool> has_several_readers{!can_interrupt_readers()};

namespace
{

void enlist(reader_slot& slot)
{
    const std::lock_guard guard(list_lock());
    slot.next = all_slots;
    if (slot.next != nullptr) {
        become_shared();
        slot.next->prev = &slot;
    }
    all_slots   = &slot;
    this_reader = &slot;
}

// A thread's slot is in the list from its first section to the end of the thread, which the destructor of a key tells:
// destructors of other keys may open sections, too, also the first of the thread, and then those of thread_local
// objects have run already. The C library repeats the round of such destructors while they set keys again.
thread_local constinit reader_slot own_slot{};
thread_local constinit unsigned num_rounds    = 0;
thread_local constinit reader_slot* late_slot = nullptr; // of a thread in its last round; stays in the list

void leave_list(void* /*slot*/)
{
    const std::lock_guard guard(list_lock());
    (own_slot.prev != nullptr ? own_slot.prev->next : all_slots) = own_slot.next;
    if (own_slot.next != nullptr) {
        own_slot.next->prev = own_slot.prev;
    }
    own_slot.next = own_slot.prev = nullptr;
    this_reader                   = nullptr;
    ++num_rounds;
}

bool watches_end_of_thread()
{
    static const std::optional<pthread_key_t> key = [] {
        pthread_key_t made{};
        return pthread_key_create(&made, leave_list) == 0 ? std::optional(made) : std::nullopt;
    }();
    return key && num_rounds + 1 < PTHREAD_DESTRUCTOR_ITERATIONS && pthread_setspecific(*key, &own_slot) == 0;
}

} // namespace

reader_slot& make_slot()
{
    if (this_reader != nullptr) {
        return *this_reader;
    }
    if (watches_end_of_thread()) {
        enlist(own_slot);
    } else {
        late_slot = late_slot != nullptr ? late_slot : new reader_slot;
        enlist(*late_slot);
    }
    return *this_reader;
}

} // namespace detail

void wait_for_readers()
{
    const std::uint64_t after = detail::reader_epoch.fetch_add(1) + 1;
    const std::lock_guard guard(list_lock());
    if (all_slots != nullptr && all_slots != detail::this_reader) {
        become_shared();
    }
    for (detail::reader_slot* slot = all_slots; slot != nullptr; slot = slot->next) {
        for (;;) {
            const std::uint64_t since = slot->since.load();
            if (since == 0 || since >= after) {
                break;
            }
            std::this_thread::yield();
        }
    }
}

void readers_before_fork()
{
    // Makes this thread's slot now, so that the child does not make it while the list is locked.
    static_cast<void>(detail::make_slot());
    list_lock().lock();
}

void readers_after_fork_in_parent()
{
    list_lock().unlock();
}

void readers_after_fork_in_child()
{
    // The other threads do not exist in the child. Their stacks, which may hold their slots, will be used again.
    detail::reader_slot& mine = detail::make_slot();
    mine.next = mine.prev = nullptr;
    all_slots             = &mine;
    list_lock().unlock();
}

} // namespace ucxl

#include "reader_section.h"

#include <mutex>
#include <thread>

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

} // namespace

namespace detail
{

thread_local reader_slot this_reader;
std::atomic<std::uint64_t> reader_epoch{1};

reader_slot::reader_slot()
{
    const std::lock_guard guard(list_lock());
    next = all_slots;
    if (next != nullptr) {
        next->prev = this;
    }
    all_slots = this;
}

reader_slot::~reader_slot()
{
    const std::lock_guard guard(list_lock());
    (prev != nullptr ? prev->next : all_slots) = next;
    if (next != nullptr) {
        next->prev = prev;
    }
}

} // namespace detail

void wait_for_readers()
{
    const std::uint64_t after = detail::reader_epoch.fetch_add(1) + 1;
    const std::lock_guard guard(list_lock());
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
    detail::this_reader.depth += 0;
    list_lock().lock();
}

void readers_after_fork_in_parent()
{
    list_lock().unlock();
}

void readers_after_fork_in_child()
{
    // The other threads do not exist in the child. Their stacks, which may hold their slots, will be used again.
    detail::reader_slot& mine = detail::this_reader;
    mine.next = mine.prev = nullptr;
    all_slots             = &mine;
    list_lock().unlock();
}

} // namespace ucxl

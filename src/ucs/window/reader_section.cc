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

thread_local constinit reader_slot* this_reader = nullptr;
std::atomic<std::uint64_t> reader_epoch{1};

namespace
{

// The slot of a thread, in the list from its first section to the end of the thread.
class listed_slot
{
public:
    listed_slot()
    {
        const std::lock_guard guard(list_lock());
        _slot.next = all_slots;
        if (_slot.next != nullptr) {
            _slot.next->prev = &_slot;
        }
        all_slots   = &_slot;
        this_reader = &_slot;
    }
    ~listed_slot()
    {
        const std::lock_guard guard(list_lock());
        (_slot.prev != nullptr ? _slot.prev->next : all_slots) = _slot.next;
        if (_slot.next != nullptr) {
            _slot.next->prev = _slot.prev;
        }
    }
    listed_slot(const listed_slot&)            = delete;
    listed_slot& operator=(const listed_slot&) = delete;

    reader_slot& get() { return _slot; }

private:
    reader_slot _slot;
};

} // namespace

reader_slot& make_slot()
{
    static thread_local listed_slot own;
    return own.get();
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

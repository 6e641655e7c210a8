// A reader section: while one is open, no window (or binding) that was found in it is freed, even if another thread
// destroys it right then. Opening costs one atomic store and takes no lock; sections of one thread may nest.
//
// A transfer between live windows needs none of this: its caller keeps them. It is for addresses that came from
// elsewhere and may be stale: the answer of window_registry::find() stays usable until the section closes.
//
// Invariant: a thread in a section never waits for another thread; window_registry::destroy() and rebind() are never
// called in one (they would wait for themselves).
//
// Example: reader_section guard; if (const window* w = registry.find(address, length)) { use(w->binding()); }
#pragma once

#include <atomic>
#include <cstdint>

namespace ucxl
{

namespace detail
{

struct reader_slot {
    reader_slot();
    ~reader_slot();
    reader_slot(const reader_slot&)            = delete;
    reader_slot& operator=(const reader_slot&) = delete;

    std::atomic<std::uint64_t> since{0}; // the epoch in which the open section began, 0: none
    std::uint32_t depth = 0;             // of this thread only
    reader_slot* next   = nullptr;       // under the lock of the list
    reader_slot* prev   = nullptr;
};

extern thread_local reader_slot this_reader;
extern std::atomic<std::uint64_t> reader_epoch;

} // namespace detail

class reader_section
{
public:
    reader_section()
    {
        detail::reader_slot& mine = detail::this_reader;
        if (mine.depth++ == 0) {
            // Sequentially consistent, so that either the reads that follow (they are so, too) see what a writer
            // unpublished, or the writer sees this section and waits for it. A section with the epoch of a writer,
            // which does not wait for it, has seen what that writer did before.
            mine.since.store(detail::reader_epoch.load(std::memory_order_acquire));
        }
    }
    ~reader_section()
    {
        detail::reader_slot& mine = detail::this_reader;
        if (--mine.depth == 0) {
            mine.since.store(0, std::memory_order_release);
        }
    }
    reader_section(const reader_section&)            = delete;
    reader_section& operator=(const reader_section&) = delete;
};

// Returns when every section that was open at the call is closed.
void wait_for_readers();

// For fork: nobody enters or leaves the list of threads while it is copied; in the child only this thread is left.
void readers_before_fork();
void readers_after_fork_in_parent();
void readers_after_fork_in_child();

} // namespace ucxl

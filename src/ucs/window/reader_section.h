// A reader section. While it is open, no window (or binding) that was found in it is freed, even if another thread
// destroys it. Opening takes no lock; sections of one thread may nest.
//
// In a process where one thread uses windows, a section is two plain stores. From the moment on when a second thread
// opens a section or waits for those of others, each one also waits until its first store is visible to all threads,
// which takes as long as copying some hundred bytes.
//
// A transfer between live windows needs no section, because its caller keeps them. Sections are for addresses from
// elsewhere that may be stale: the answer of window_registry::find() stays usable until the section closes.
//
// Invariant: a thread in a section never waits for another thread of its process. It calls neither
// window_registry::destroy() nor rebind(), which would wait for the section itself.
//
// The steps are those of test/models/reader_section.pml.
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
    std::atomic<std::uint64_t> since{0}; // the epoch in which the open section began; 0: none is open
    std::uint32_t depth = 0;             // used by this thread only
    reader_slot* next   = nullptr;       // guarded by the lock of the list
    reader_slot* prev   = nullptr;
};

// Null until the thread's first section. Sections are opened for every fragment of a message: an access of this kind
// costs no call, as the default one of a shared library does.
extern thread_local constinit reader_slot* this_reader [[gnu::tls_model("initial-exec")]];
reader_slot& make_slot();
extern std::atomic<std::uint64_t> reader_epoch;
// Whether sections have to be visible to other threads at once. Never becomes false again.
extern std::atomic<bool> has_several_readers;

} // namespace detail

class reader_section
{
public:
    reader_section() : _slot(detail::this_reader != nullptr ? *detail::this_reader : detail::make_slot())
    {
        if (_slot.depth++ == 0) {
            const std::uint64_t epoch = detail::reader_epoch.load(std::memory_order_acquire);
            _slot.since.store(epoch, std::memory_order_relaxed);
            // The order of the store before and the load after is what a second thread relies on (become_shared()).
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (detail::has_several_readers.load(std::memory_order_relaxed)) {
                // Sequentially consistent, as the reads that follow: either those reads see what a writer unpublished,
                // or the writer sees this section and waits for it. A section that has the epoch of a writer is not
                // waited for, but it sees everything the writer did before.
                _slot.since.store(epoch);
            }
        }
    }
    ~reader_section()
    {
        if (--_slot.depth == 0) {
            _slot.since.store(0, std::memory_order_release);
        }
    }
    reader_section(const reader_section&)            = delete;
    reader_section& operator=(const reader_section&) = delete;

private:
    detail::reader_slot& _slot;
};

// Returns when every section that was open at the time of the call is closed.
void wait_for_readers();

// For fork: no thread enters or leaves the list while it is copied. In the child, only this thread is left.
void readers_before_fork();
void readers_after_fork_in_parent();
void readers_after_fork_in_child();

} // namespace ucxl

// Windows: a layout applied to base addresses, seen through a contiguous range of reserved addresses in packed order.
//
// All windows live in one arena (reserved PROT_NONE, 1 TiB by default, UCX_LAYOUT_ARENA_SIZE, made with the first
// window), so that "is this address in a window, and in which" is a shift and a table read: no lock, no search, any
// thread, at any time. An address of the arena that belongs to no live window, or crosses the end of one, is answered
// with "none". At least one guard page follows every window. A freed range is handed out again as late as possible
// (stale addresses stay "none" for long), and each use of a range has its own generation.
//
// A window whose layout is one contiguous block and whose memory was allocated by us may be mapped at its address
// ("identity"): then plain loads and stores work on it, and software atomics too.
//
// A process that forks has the same windows in the child, over the child's copy of the memory.
//
// Example:
//     auto w = window_registry::instance().create({plan, {matrix}});   // result<window*>
//     send((*w)->address(), (*w)->length());
//     window_registry::instance().destroy(*w);
#pragma once

#include "layout_memory.h"
#include "reader_section.h"
#include "slot_table.h"

#include "sys/error.h"
#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ucxl
{

class arena;

// What a transport keeps with a window, under a lock of that transport.
struct window_attachment {
    std::shared_ptr<const void> value;
};

// What a window shows. Immutable once published; rebinding publishes another one.
struct window_binding {
    pack_plan_ptr plan;
    std::vector<std::byte*> bases;                   // plan->source_layout()->num_sources() of them
    std::shared_ptr<const layout_memory> memory{};   // where the bases are, if it belongs to the window
    std::shared_ptr<window_attachment> attachment{}; // of the window, whatever it is bound to; made with it
};

// What the CPU of this process moved through a window. Counted without a lock: of operations of several threads at the
// same time some may be missing.
class window_traffic
{
public:
    struct counts {
        std::uint64_t reads;
        std::uint64_t writes;
        std::uint64_t bytes_read;
        std::uint64_t bytes_written;
    };

    void count_read(std::uint64_t length)
    {
        add(_reads, 1);
        add(_bytes_read, length);
    }
    void count_write(std::uint64_t length)
    {
        add(_writes, 1);
        add(_bytes_written, length);
    }
    counts get() const
    {
        constexpr auto relaxed = std::memory_order_relaxed;
        return {_reads.load(relaxed), _writes.load(relaxed), _bytes_read.load(relaxed), _bytes_written.load(relaxed)};
    }

private:
    // Two plain instructions; an atomic addition would cost as much as moving some hundred bytes.
    static void add(std::atomic<std::uint64_t>& count, std::uint64_t more)
    {
        count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }

    std::atomic<std::uint64_t> _reads{0};
    std::atomic<std::uint64_t> _writes{0};
    std::atomic<std::uint64_t> _bytes_read{0};
    std::atomic<std::uint64_t> _bytes_written{0};
};

class window
{
public:
    std::byte* address() const { return _address; }
    std::uint64_t length() const { return _length; }         // bytes, packed
    std::uint64_t generation() const { return _generation; } // unique in the process, never 0

    // Of all that was moved since it was made.
    window_traffic& traffic() const { return _traffic; }

    // Loads and stores at address() work.
    bool is_identity() const { return _is_identity.load(std::memory_order_relaxed); }

    // The current plan and bases. Wait-free. What it points to stays until the window is destroyed or rebound and no
    // reader_section that began before is left.
    const window_binding& binding() const { return *_binding.load(); } // ordered behind the start of a section

private:
    friend class window_registry;

    std::byte* _address       = nullptr;
    std::uint64_t _length     = 0;
    std::uint64_t _generation = 0;
    std::atomic<bool> _is_identity{false};
    std::atomic<const window_binding*> _binding{nullptr};
    std::unique_ptr<const window_binding> _owned;
    window_range _range;
    mutable window_traffic _traffic;
};

class window_registry
{
public:
    // The registry of the process. Costs nothing until the first window.
    static window_registry& instance();
    // One with an arena of its own, for tests: length is in bytes, at least one slot. Errors: no_memory, invalid_param.
    static result<std::unique_ptr<window_registry>> create_private(std::size_t arena_length);
    // Of a private one: the windows that are left go with it.
    ~window_registry();
    window_registry(const window_registry&)            = delete;
    window_registry& operator=(const window_registry&) = delete;

    bool in_arena(const void* address) const
    {
        const std::size_t length = _arena_length.load(std::memory_order_acquire); // 0 until everything else is there
        return reinterpret_cast<std::uintptr_t>(address) - _base.load(std::memory_order_relaxed) < length;
    }
    // Whether some byte of [address, address + length) is in it or in its margins (arena.h).
    bool touches_arena(const void* address, std::uint64_t length) const;
    // Null until the first window was created; then it stays.
    std::byte* arena_base() const { return reinterpret_cast<std::byte*>(_base.load(std::memory_order_relaxed)); }
    std::size_t arena_length() const { return _arena_length.load(std::memory_order_relaxed); }
    // Makes the arena if it is not there, and tells UCX's memory type cache of it. create() does so by itself.
    // Errors: no_memory, invalid_param (UCX_LAYOUT_ARENA_SIZE).
    result<void> reserve();

    // The live window that holds all of [address, address + length), or null. Wait-free, any thread. Who cannot be sure
    // that nobody destroys that window meanwhile asks within a reader_section.
    const window* find(const void* address, std::uint64_t length) const;

    // A new window over the binding. Errors: no_memory (arena or heap), invalid_param (number of bases, arena size),
    // exceeds_limit (longer than the arena). An empty layout gets a window of length 0 with an address of its own.
    // Throws std::bad_alloc.
    result<window*> create(window_binding binding);
    // A window over zeroed memory of its own, which goes with it; over one contiguous block it is an identity window.
    // Errors: as create(), and those of layout_memory. Throws std::bad_alloc.
    result<window*> allocate(pack_plan_ptr plan);
    // Other bases, and possibly another layout of the same packed length. Waits for reader sections. Errors: no_memory,
    // invalid_param.
    result<void> rebind(window& of, window_binding binding);
    // Maps the file's bytes from offset (whole pages) on at the address of the window. Errors: no_memory, invalid_param
    // (layout not contiguous, empty, or what mmap says).
    result<void> map_identity(window& of, int fd, std::uint64_t offset);
    // The addresses answer "none" from now on, and no reader section is left that found the window; the window itself
    // stays. Waits for reader sections.
    void unpublish(window& window);
    // The opposite: a window that was unpublished is found again. Neither fails.
    void publish(window& window);
    // The range goes back to "none" before this returns. Waits for reader sections. No-op for null.
    void destroy(window* what);

    std::size_t num_live() const { return _num_live.load(std::memory_order_relaxed); }

private:
    window_registry();

    result<void> reserve_locked(std::size_t length);

    std::atomic<std::uintptr_t> _base{0};
    std::atomic<std::size_t> _arena_length{0};
    std::atomic<std::size_t> _num_live{0};
    std::unique_ptr<slot_table> _slots;
    std::unique_ptr<arena> _arena;
};

} // namespace ucxl

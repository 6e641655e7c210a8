// Windows: a layout applied to base addresses, seen through a contiguous range of reserved addresses in packed order.
//
// All windows live in one arena (reserved PROT_NONE, 1 TiB by default, UCX_LAYOUT_ARENA_SIZE), so that "is this address in a window, and in
// which" is a shift and a table read: no lock, no search, any thread, at any time. An address of the arena that belongs to no live window, or
// crosses the end of one, is answered with "none". At least one guard page follows every window. A freed range is not handed
// out again before every other free range of its size (stale addresses stay "none" for long), and each use of a range has
// its own generation.
//
// A window whose layout is one contiguous block and whose memory was allocated by us may be mapped at its address
// ("identity"): then plain loads and stores work on it, and software atomics too.
#pragma once

#include "ucs/layout/error.h"
#include "ucs/pack/pack_plan.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ucxl
{

// What a window shows. Immutable once published; rebinding publishes another one.
struct window_binding {
    pack_plan_ptr plan;
    std::vector<std::byte*> bases; // plan->source_layout()->num_sources() of them
};

class window
{
public:
    std::byte* address() const { return _address; }
    std::uint64_t length() const { return _length; }         // bytes, packed
    std::uint64_t generation() const { return _generation; } // unique in the process, never 0

    // The current plan and bases. Wait-free. What it points to stays until the window is destroyed or rebound and no
    // reader_section that began before is left.
    const window_binding& binding() const { return *_binding.load(std::memory_order_acquire); }

private:
    friend class window_registry;

    std::byte* _address       = nullptr;
    std::uint64_t _length     = 0;
    std::uint64_t _generation = 0;
    std::atomic<const window_binding*> _binding{nullptr};
    std::unique_ptr<const window_binding> _owned;
};

class window_registry
{
public:
    // The registry of the process, made at first use; arena_failure() says why if reserving failed.
    static window_registry& instance();

    bool in_arena(const void* address) const
    {
        return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(_arena) < _arena_length;
    }
    std::byte* arena() const { return _arena; } // null when reserving failed
    std::size_t arena_length() const { return _arena_length; }

    // The live window that holds all of [address, address + length), or null. Wait-free, any thread.
    const window* find(const void* address, std::size_t length) const;

    // A new window over the binding. Errors: no_memory (arena or heap), invalid_param (number of bases), exceeds_limit (longer than the arena allows).
    // An empty layout gets a window of length 0 with an address of its own.
    result<window*> create(window_binding binding);
    // Other bases, and possibly another layout of the same packed length. The caller makes sure that no transfer is using the window.
    result<void> rebind(window& of, window_binding binding);
    // The caller makes sure that no transfer is using the window. The range goes back to "none" before this returns.
    void destroy(window* what);

    std::size_t num_live() const;
};

} // namespace ucxl

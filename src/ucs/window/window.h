// Windows: a layout applied to base addresses, visible as a contiguous range of reserved addresses in packed order.
//
// All windows live in one arena: reserved PROT_NONE, 1 TiB by default (UCX_LAYOUT_ARENA_SIZE), made with the first
// window. Copied windows have parts of their own, which UCX knows as other memory types (window_carrier.h). A shift and
// a table read tell which window an address belongs to: no lock, no search, from any thread at any time. For an address
// of the arena that belongs to no live window, or a range that crosses the end of one, the answer is "none". At least
// one guard page follows every window. A freed range is reused as late as possible, so stale addresses stay "none" for
// long. Each use of a range has its own generation.
//
// A window over one contiguous block in memory that we allocated may be mapped at its own address ("identity"). Plain
// loads, stores and software atomics then work on it.
//
// After a fork the child has the same windows, over its copy of the memory.
//
// Example:
//     auto w = window_registry::instance().create({plan, {matrix}});   // result<window*>
//     send((*w)->address(), (*w)->length());
//     window_registry::instance().destroy(*w);
#pragma once

#include "indirect_memory.h"
#include "layout_memory.h"
#include "reader_section.h"
#include "region.h"
#include "slot_table.h"
#include "window_carrier.h"

#include "sys/error.h"
#include "sys/mapped_ranges.h"
#include "ucs/pack/pack_plan.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <ucs/memory/memory_type.h>

namespace ucxl
{

class arena;
class foreign_memory;

// What a transport keeps for a window. The transport guards it with a lock of its own.
struct window_attachment {
    std::shared_ptr<const void> value;
};

// What a window shows. A published binding is immutable; rebinding publishes another one.
struct window_binding {
    pack_plan_ptr plan;
    std::vector<std::byte*> bases;                 // plan->source_layout()->num_sources() of them
    std::shared_ptr<const layout_memory> memory{}; // holds the bases, if the memory belongs to the window
    // Set by complete(): for each source the region that holds its bytes, null for a source without bytes. None if
    // some bytes are in no region.
    std::vector<region_ptr> regions{};
    std::shared_ptr<window_attachment> attachment{}; // belongs to the window, whatever it is bound to; made with it
    // Memory of a network card: the window is that memory itself, or some of its bases are inside such a window.
    const indirect_memory* indirect = nullptr;
    bool has_indirect_bases         = false; // set by complete()
    block_row row{};                         // of the plan at the bases, if the CPU can reach them; the same
    std::shared_ptr<const void> owner{};     // holds other memory that belongs to the window

    // Whether peers of this host can map all of the bytes.
    bool is_shared() const { return !regions.empty(); }
    // Whether the program may have other memory there soon: it takes a region back.
    bool is_withdrawn() const
    {
        return std::ranges::any_of(regions, [](const auto& held) { return held != nullptr && held->is_withdrawn(); });
    }
    // Whether all bytes of a shared window stay, whatever others do with its files.
    bool keeps_its_memory() const
    {
        return std::ranges::all_of(regions,
                                   [](const auto& held) { return held == nullptr || held->keeps_its_memory(); });
    }
    // Whether the CPU can reach the bytes only by copies.
    bool is_indirect() const { return indirect != nullptr || has_indirect_bases; }
};

// Bytes that the CPU of this process moved through a window. Counted without a lock, so operations of several threads
// at the same time may lose some.
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
    // Two plain instructions: an atomic addition would cost as much as moving some hundred bytes.
    static void add(std::atomic<std::uint64_t>& count, std::uint64_t more)
    {
        count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
    }

    std::atomic<std::uint64_t> _reads{0};
    std::atomic<std::uint64_t> _writes{0};
    std::atomic<std::uint64_t> _bytes_read{0};
    std::atomic<std::uint64_t> _bytes_written{0};
};

class alignas(slot_table::window_alignment) window
{
public:
    std::byte* address() const { return _address; }
    std::uint64_t length() const { return _length; }         // packed bytes
    std::uint64_t generation() const { return _generation; } // unique in the process, never 0

    // As it was decided when the window was made; its part of the arena follows from that.
    window_carrier carrier() const { return _carrier; }

    // The bytes moved since the window was made.
    window_traffic& traffic() const { return _traffic; }

    // Whether loads and stores at address() work.
    bool is_identity() const { return _is_identity.load(std::memory_order_relaxed); }

    // What the layer above calls this window, or 0; it tells others who ask by an address.
    std::uintptr_t name() const { return _name.load(std::memory_order_relaxed); }
    void set_name(std::uintptr_t name) { _name.store(name, std::memory_order_relaxed); }

    // Whether a cache of registrations may have its addresses.
    bool was_registered() const { return _was_registered.load(std::memory_order_relaxed); }

    // The current plan and bases. Wait-free. They stay until the window is destroyed or rebound and every
    // reader_section that began before has closed.
    const window_binding& binding() const { return *_binding.load(); } // ordered behind the start of a section

private:
    friend class window_registry;

    std::byte* _address       = nullptr;
    std::uint64_t _length     = 0;
    std::uint64_t _generation = 0;
    window_carrier _carrier   = window_carrier::undecided;
    std::atomic<bool> _is_identity{false};
    std::atomic<std::uintptr_t> _name{0};
    mutable std::atomic<bool> _was_registered{false};
    std::atomic<const window_binding*> _binding{nullptr};
    std::unique_ptr<const window_binding> _owned;
    window_range _range;
    mutable window_traffic _traffic;
};

// For each source the region that holds its bytes, null for a source without bytes. None if some bytes are in no
// region. bases.size() == described.num_sources(). Throws std::bad_alloc.
std::vector<region_ptr> regions_of(const layout& described, std::span<std::byte* const> bases);

class window_registry
{
public:
    // The registry of the process. It costs nothing until the first window.
    static window_registry& instance()
    {
        window_registry* const made = _process.load(std::memory_order_acquire);
        return made != nullptr ? *made : make_instance();
    }
    // From now on fork holds the lock of all registries. Fork takes the locks of the last handlers first, so whoever
    // has a lock that is taken before this one calls this before it installs handlers. False: no memory, and there
    // will be no window.
    static bool hold_lock_over_fork();
    // A registry with an arena of its own, for tests. The length is in bytes, at least one slot. Errors: no_memory,
    // invalid_param.
    static result<std::unique_ptr<window_registry>> create_private(std::size_t arena_length,
                                                                   const part_types& types = {});
    // Only for private registries. Destroys the windows that are left.
    ~window_registry();
    window_registry(const window_registry&)            = delete;
    window_registry& operator=(const window_registry&) = delete;

    bool in_arena(const void* address) const
    {
        const std::size_t length = _arena_length.load(std::memory_order_acquire); // 0 until everything else is set
        return reinterpret_cast<std::uintptr_t>(address) - _base.load(std::memory_order_relaxed) < length;
    }
    // Whether some byte of [address, address + length) is in the arena or its margins (arena.h).
    bool touches_arena(const void* address, std::uint64_t length) const
    {
        const std::size_t reserved = _arena_length.load(std::memory_order_acquire);
        const std::uintptr_t first = _base.load(std::memory_order_relaxed) - margin;
        const std::uintptr_t from  = reinterpret_cast<std::uintptr_t>(address);
        return reserved != 0 && (from - first < reserved + 2 * margin || length > first - from);
    }
    address_range addresses_of_arena() const; // margins included; none before reserve()
    // The type that UCX knows the address as, which is in the arena or its margins. Wait-free.
    ucs_memory_type_t memory_type_at(const void* address) const;
    // Null until the first window is created, constant afterwards.
    std::byte* arena_base() const { return reinterpret_cast<std::byte*>(_base.load(std::memory_order_relaxed)); }
    std::size_t arena_length() const { return _arena_length.load(std::memory_order_relaxed); }
    // Makes the arena if it does not exist yet, and adds it to UCX's memory type cache. create() calls it. Errors:
    // no_memory, invalid_param (UCX_LAYOUT_ARENA_SIZE).
    result<void> reserve();

    // Whether a live window of this process has bytes in the range.
    bool holds_windows(const void* address, std::uint64_t length) const;
    // From now on, for ever, no window is made at addresses that the memory has, and copies to and from these addresses
    // are its own.
    void set_foreign(const foreign_memory& memory) { _foreign.store(&memory); }
    const foreign_memory* foreign() const { return _foreign.load(std::memory_order_acquire); }

    // Returns the live window that holds all of [address, address + length), or null. Wait-free, any thread. Call it
    // within a reader_section if another thread may destroy that window.
    const window* find(const void* address, std::uint64_t length) const
    {
        if (!in_arena(address)) {
            return nullptr;
        }
        const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - _base.load(std::memory_order_relaxed);
        const window* const found   = _slots->lookup(offset);
        if (found == nullptr) {
            return nullptr;
        }
        const auto into = static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - found->_address);
        return into <= found->_length && length <= found->_length - into ? found : nullptr;
    }

    // Makes a window over the binding. An empty layout gets a window of length 0 with its own address. Errors:
    // no_memory (arena or heap), invalid_param (number of bases, arena size, no such part), exceeds_limit (longer than
    // its part of the arena). Throws std::bad_alloc.
    result<window*> create(window_binding binding, window_carrier carrier = window_carrier::undecided);
    // Makes a window over zeroed memory of its own, which is freed with it. Over one contiguous block it is an identity
    // window. Errors: those of create() and of layout_memory. Throws std::bad_alloc.
    result<window*> allocate(pack_plan_ptr plan, window_carrier carrier = window_carrier::undecided);

    // The steps of these two, for those who decide in between who carries the window. The memory of a new window.
    // Errors: those of reserve() and of layout_memory. Throws std::bad_alloc.
    result<window_binding> allocate_memory(pack_plan_ptr plan);
    // Finds out what the bases are. Errors: as create(). Throws std::bad_alloc.
    result<void> complete(window_binding& binding);
    // Whether the arena has a part for such windows; after reserve().
    bool has_part(window_carrier carrier) const;
    // Makes a window over a complete binding. Errors: as create().
    result<window*> place(window_binding binding, window_carrier carrier);
    // Makes a window that stands for memory of a network card, of `length` > 0 bytes. Errors: as create(). Throws
    // std::bad_alloc.
    result<window*> create_indirect(std::uint64_t length, const indirect_memory& memory);
    // Replaces the bases, and possibly the layout by one of the same packed length. Waits for reader sections. Errors:
    // no_memory, invalid_param.
    result<void> rebind(window& window, window_binding binding);
    // Maps the bytes of the file from `offset` (whole pages) on at the window's address. Errors: no_memory,
    // invalid_param (the layout is not contiguous or empty, or mmap refuses).
    result<void> map_identity(window& window, int fd, std::uint64_t offset);
    // From now on the addresses are "none". Waits for reader sections, so nobody uses the window afterwards; the window
    // itself stays.
    void unpublish(window& window);
    // Undoes unpublish(). Neither can fail.
    void publish(window& window);
    // UCX registers the range, which may be any memory. UCX's caches of registrations have to hear of the end of
    // windows there, and hear nothing of the end of others. Where no window is, a registration is good for nothing: UCX
    // is told at once not to give it out. Any thread.
    void note_registration(void* address, std::uint64_t length);
    // The range is "none" before this returns. Waits for reader sections. Does nothing for null.
    void destroy(window* window);

    // The addresses of live windows with bytes in the region. Throws std::bad_alloc.
    std::vector<std::byte*> windows_over(const region& memory) const;

    std::size_t num_live() const { return _num_live.load(std::memory_order_relaxed); }

private:
    static constexpr std::uintptr_t margin = slot_table::slot_length; // arena::margin

    window_registry();
    static window_registry& make_instance();

    struct arena_range {
        std::uint64_t first;
        std::uint64_t end;
    };

    result<window*> place_without_memory(window_binding binding, window_carrier carrier);
    arena_range part_in_arena(const void* address, std::uint64_t length) const;
    bool mark_registered(const void* address, std::uint64_t length);
    void find_indirect_bases(window_binding& binding) const;
    static void find_regions(window_binding& binding);
    result<window_range> find_addresses(std::uint64_t needed, std::size_t part);
    result<void> reserve_locked(std::size_t length, const part_types& types);

    static inline constinit std::atomic<window_registry*> _process{nullptr};

    std::atomic<std::uintptr_t> _base{0};
    std::atomic<std::size_t> _arena_length{0};
    std::atomic<std::size_t> _num_live{0};
    std::atomic<const foreign_memory*> _foreign{nullptr};
    // Set before the length.
    huge_pages_option _huge_pages  = huge_pages_option::possible;
    std::ptrdiff_t _staged_start   = PTRDIFF_MAX; // from the base
    std::ptrdiff_t _direct_start   = PTRDIFF_MAX;
    ucs_memory_type_t _staged_type = UCS_MEMORY_TYPE_RDMA;
    ucs_memory_type_t _direct_type = UCS_MEMORY_TYPE_RDMA;
    std::unique_ptr<slot_table> _slots;
    std::unique_ptr<arena> _arena;
};

} // namespace ucxl

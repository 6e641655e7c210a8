// Shared memory of this process: a range of its addresses that shows a file, which other processes of the host can map.
// A window all of whose bytes lie in regions, in one or in several, is direct: peers map each region once, whatever
// windows are over it.
//
// The file of a region never becomes shorter (F_SEAL_SHRINK), so whoever maps it can touch all of it for as long as the
// mapping lasts. Files of the caller that cannot be sealed are the exception: peers guard their mappings of these
// (sys/guarded_range.h), and the owner takes no part in what they do there. It touches its own mapping for its program,
// and for operations that come by messages.
//
// Example:
//     auto memory = region::allocate(1 << 30, {.huge_pages = huge_pages_option::possible});    // result<region_ptr>
//     region_table::instance().add(*memory);
//     region_table::instance().find((*memory)->start() + 8, 100);              // the same region
#pragma once

#include "sys/error.h"
#include "sys/kept_fd.h"
#include "sys/mapping.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace ucxl
{

// UCX_LAYOUT_HUGE_PAGES
enum class huge_pages_option : std::uint8_t {
    possible, // if the kernel has them
    never,
    always, // otherwise allocation fails
};

// Where the memory of a region is from. Other processes read the numbers.
enum class region_origin : std::uint8_t {
    library, // allocated by the library
    caller,  // a shared mapping of the caller
    moved,   // private memory of the caller, moved into a file
};

// Of memory that the library allocates.
struct region_options {
    huge_pages_option huge_pages = huge_pages_option::possible;
    std::uint64_t alignment      = 0;  // of the first byte: a power of two; below a page: a page
    int numa_node                = -1; // on which memory is taken first; -1: that of the thread that touches it
};

class region;
using region_ptr = std::shared_ptr<const region>;

class region
{
public:
    // Zeroed memory of whole pages, of 1 byte or more. With huge pages all of it is allocated at once, which takes as
    // long as touching it. Errors: no_memory (the message has the size), invalid_param (there is no such node). Throws
    // std::bad_alloc.
    static result<region_ptr> allocate(std::uint64_t length, const region_options& options);
    // Memory of the caller, who keeps it mapped, and the file as long, until withdraw(): [start, start + length) shows
    // the file from `offset` on, shared. Start and offset are at page boundaries, of the file's pages if it is in huge
    // ones. If the file can be sealed, it cannot become shorter from now on. Errors: invalid_param (the file is none in
    // memory, is shorter, or is not what the memory shows). Throws std::bad_alloc.
    static result<region_ptr> share(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset);
    // The same with the file that the memory shows, found by the address (shown_file.h).
    static result<region_ptr> share(std::byte* start, std::uint64_t length);
    // Private memory of the caller, which moves into a file at the same addresses until withdraw(), with all of its
    // first and its last page (moved_memory.h). Errors: as move_into_file(). Throws std::bad_alloc.
    static result<region_ptr> move(std::byte* start, std::uint64_t length, huge_pages_option huge_pages);
    ~region();
    region(const region&)            = delete;
    region& operator=(const region&) = delete;

    region_origin origin() const { return _origin; }
    std::byte* start() const { return _start; }
    std::uint64_t length() const { return _length; } // bytes
    int fd() const { return _file.get(); }
    std::uint64_t device() const { return _file.device(); } // of the file, as stat(2) tells it
    std::uint64_t inode() const { return _file.inode(); }
    std::uint64_t file_offset() const { return _file_offset; } // of the first byte
    // False: the file is the caller's and may lose pages, and touching what it does not have ends the process.
    bool keeps_its_memory() const { return _keeps_its_memory; }
    bool holds(const void* address, std::uint64_t length) const
    {
        const std::uint64_t into = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(_start);
        return into <= _length && length <= _length - into;
    }

    // From now on nobody finds the region, and no window over it gets a key. Memory that was moved is private again.
    void withdraw() const noexcept;
    // In a child of fork(), of memory that was moved: first its bytes, then the rest. The region itself may be in
    // memory that was moved, which is the parent's until all of it was taken; so the first step writes to nothing.
    void take_memory_from_parent() const noexcept;
    void withdraw_what_was_taken() const noexcept;
    // In a child of fork(), of memory that the child does not show: the file lives no longer than the parent does.
    void withdraw_in_child() const noexcept;
    bool is_withdrawn() const { return _is_withdrawn.load(std::memory_order_acquire); }

private:
    region() = default;
    result<void> keep(owned_fd file);
    bool is_moved() const noexcept; // and is not private again
    int fd_if_there() const noexcept { return _file.is_there() ? _file.get() : -1; }

    mutable kept_fd _file;
    owned_mapping _mapping; // nothing if the memory is the caller's
    region_origin _origin      = region_origin::library;
    std::byte* _start          = nullptr;
    std::uint64_t _length      = 0;
    std::uint64_t _file_offset = 0;
    bool _keeps_its_memory     = true;
    mutable std::atomic<bool> _is_withdrawn{false};
    mutable std::atomic<bool> _is_private{false}; // of memory that was moved: after it was withdrawn
};

// The regions of the process. It holds none of them: one that ended is not found any more. Any thread.
class region_table
{
public:
    static region_table& instance();
    region_table() = default;
    ~region_table();
    region_table(const region_table&)            = delete;
    region_table& operator=(const region_table&) = delete;

    // Waits for reader sections. Errors: invalid_param (a region is at some of these addresses already). Throws
    // std::bad_alloc.
    result<void> add(const region_ptr& added);
    // Withdraws a region that was added.
    void remove(const region& removed);
    // Tells of all regions now and whenever one is added or removed. One that ends by itself is told with the next
    // change. Under the lock of the table; may throw nothing.
    using watcher = void (*)(std::span<const region_ptr> all);
    void watch(watcher told);
    // Whether there was never a region.
    bool is_empty() const { return _now.load(std::memory_order_relaxed) == nullptr; }
    // The region that holds all of [address, address + length), or null. Takes no lock; the time grows with the
    // logarithm of their number.
    region_ptr find(const void* address, std::uint64_t length) const;
    // In a child of fork().
    void take_moved_memory_from_parent() const noexcept;

private:
    struct entry {
        std::uintptr_t start;
        std::uintptr_t end;
        std::weak_ptr<const region> held;
        const region* made; // the same one; it is there if `held` has not expired
    };
    using snapshot = std::vector<entry>; // by address; no two overlap

    snapshot live_entries() const;
    void replace(std::unique_ptr<const snapshot> after);

    std::mutex _lock;        // of those that write
    watcher _told = nullptr; // under it
    std::atomic<const snapshot*> _now{nullptr};
};

} // namespace ucxl

// Shared memory of this process: a range of its addresses that shows a file, which other processes of the host can map.
// A window all of whose bytes lie in regions, in one or in several, is direct: peers map each region once, whatever
// windows are over it.
//
// The file of a region never becomes shorter (F_SEAL_SHRINK), so whoever maps it can touch all of it for as long as the
// mapping lasts.
//
// Example:
//     auto memory = region::allocate(1 << 30, huge_pages_option::possible);    // result<region_ptr>
//     region_table::instance().add(*memory);
//     region_table::instance().find((*memory)->start() + 8, 100);              // the same region
#pragma once

#include "sys/error.h"
#include "sys/fd.h"
#include "sys/mapping.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ucxl
{

// UCX_LAYOUT_HUGE_PAGES
enum class huge_pages_option : std::uint8_t {
    possible, // if the kernel has them
    never,
    always, // otherwise allocation fails
};

class region;
using region_ptr = std::shared_ptr<const region>;

class region
{
public:
    // Zeroed memory of whole pages, of 1 byte or more. With huge pages all of it is allocated at once, which takes as
    // long as touching it. Errors: no_memory (the message has the size). Throws std::bad_alloc.
    static result<region_ptr> allocate(std::uint64_t length, huge_pages_option huge_pages);
    // Memory of the caller, who keeps it mapped until withdraw(): [start, start + length) shows the file from `offset`
    // on, shared. Start and offset are at page boundaries. From now on the file cannot become shorter. Errors:
    // invalid_param (the file is none in memory, is shorter, cannot be sealed, or is not what the memory shows). Throws
    // std::bad_alloc.
    static result<region_ptr> share(std::byte* start, std::uint64_t length, int fd, std::uint64_t offset);
    region(const region&)            = delete;
    region& operator=(const region&) = delete;

    std::byte* start() const { return _start; }
    std::uint64_t length() const { return _length; } // bytes
    int fd() const { return _file.get(); }
    std::uint64_t inode() const { return _inode; }
    std::uint64_t file_offset() const { return _file_offset; } // of the first byte
    bool holds(const void* address, std::uint64_t length) const
    {
        const std::uint64_t into = reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(_start);
        return into <= _length && length <= _length - into;
    }

    // From now on nobody finds the region, and no window over it gets a key.
    void withdraw() const { _is_withdrawn.store(true, std::memory_order_release); }
    bool is_withdrawn() const { return _is_withdrawn.load(std::memory_order_acquire); }

private:
    region() = default;
    result<void> learn_inode();

    owned_fd _file;
    owned_mapping _mapping; // nothing if the memory is the caller's
    std::byte* _start          = nullptr;
    std::uint64_t _length      = 0;
    std::uint64_t _inode       = 0;
    std::uint64_t _file_offset = 0;
    mutable std::atomic<bool> _is_withdrawn{false};
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
    // Whether there was never a region.
    bool is_empty() const { return _now.load(std::memory_order_relaxed) == nullptr; }
    // The region that holds all of [address, address + length), or null. Takes no lock; the time grows with the
    // logarithm of their number.
    region_ptr find(const void* address, std::uint64_t length) const;

private:
    struct entry {
        std::uintptr_t start;
        std::uintptr_t end;
        std::weak_ptr<const region> held;
    };
    using snapshot = std::vector<entry>; // by address; no two overlap

    std::mutex _lock; // of those that write
    std::atomic<const snapshot*> _now{nullptr};
};

} // namespace ucxl

// The arena: one range of reserved addresses without memory, which UCX knows as memory of type RDMA.
//
// Stock UCP takes an address for host memory, and reads it, unless the memory type cache says otherwise. The whole
// arena therefore has one entry in that cache, made together with the arena. UCM's events for mapping and unmapping
// parts of the arena leave that entry alone, because the cache listens to events of typed memory only. With
// UCX_MEMTYPE_CACHE=n UCP asks the memory domain instead.
//
// Example: auto a = arena::reserve(1ull << 40); ... (*a)->clear(0, 4096);
#pragma once

#include "sys/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ucxl
{

class arena
{
public:
    // Reserves whole slots of the slot table: the length is rounded down to slots, then halved until the system grants
    // it, but not below min_length (or the requested length, if that is less). Errors: no_memory, invalid_param (less
    // than one slot).
    static constexpr std::size_t min_length = std::size_t{1} << 30;
    static result<std::unique_ptr<arena>> reserve(std::size_t length);
    // Reserved addresses before and behind the arena. No window gets them, so an address that a peer computes just
    // outside a window is nobody's memory.
    static constexpr std::size_t margin = std::size_t{64} << 20;
    ~arena();
    arena(const arena&)            = delete;
    arena& operator=(const arena&) = delete;

    std::byte* base() const { return _base; } // behind the first margin
    std::size_t length() const { return _length; }

    // Adds the entry to the memory type cache. Repeating it costs little and changes nothing.
    void announce() const;
    // Puts plain reserved addresses in place of whatever was mapped. UCM reports the range as unmapped, so registration
    // caches drop it. Offset and length are whole pages. Errors: no_memory.
    result<void> clear(std::uint64_t offset, std::size_t length) const;
    // Maps `length` bytes of the file there, shared. Errors: no_memory, invalid_param (the message has errno).
    result<void> map_file(std::uint64_t offset, std::size_t length, int fd, std::uint64_t file_offset) const;

private:
    arena(std::byte* base, std::size_t length) : _base(base), _length(length) {}

    std::byte* _base;
    std::size_t _length;
};

std::size_t page_length();
// Rounds up to whole pages; length <= 2^63.
std::uint64_t round_to_pages(std::uint64_t length);

} // namespace ucxl

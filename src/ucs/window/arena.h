// The arena: one range of reserved addresses that no memory is behind, and UCX's knowledge that they are of type RDMA.
//
// Stock UCP treats an address as host memory unless the memory type cache says otherwise, and would read it. So the
// whole arena has one entry in that cache, made when the arena is; UCM's events for mapping and unmapping parts of the
// arena leave the cache alone (it listens to events of typed memory only). With UCX_MEMTYPE_CACHE=n UCP
// asks the memory domain instead.
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
    // Whole slots of the slot table: length is rounded down to such, and halved down to min_length (or to the length
    // asked for, if that is less) until the system gives that much. Errors: no_memory, invalid_param (less than one
    // slot).
    static constexpr std::size_t min_length = std::size_t{1} << 30;
    static result<std::unique_ptr<arena>> reserve(std::size_t length);
    // Reserved addresses in front of it and behind it, which no window ever gets: what a peer takes for an address just
    // outside of a window is not somebody's memory.
    static constexpr std::size_t margin = std::size_t{64} << 20;
    ~arena();
    arena(const arena&)            = delete;
    arena& operator=(const arena&) = delete;

    std::byte* base() const { return _base; } // behind the margin
    std::size_t length() const { return _length; }

    // Tells the memory type cache (again; it costs little and changes nothing when it is known).
    void announce() const;
    // Puts plain reserved addresses there, whatever was mapped. UCM reports the range as unmapped, so that
    // registration caches drop what they know about it. Offset and length in whole pages. Errors: no_memory.
    result<void> clear(std::uint64_t offset, std::size_t length) const;
    // Shares `length` bytes of the file there. Errors: no_memory, invalid_param (errno says which).
    result<void> map_file(std::uint64_t offset, std::size_t length, int fd, std::uint64_t file_offset) const;

private:
    arena(std::byte* base, std::size_t length) : _base(base), _length(length) {}

    std::byte* _base;
    std::size_t _length;
};

std::size_t page_length();
// Up to whole pages; the argument is at most 2^63.
std::uint64_t round_to_pages(std::uint64_t length);

} // namespace ucxl

// The arena: one range of reserved addresses without memory, which UCX knows as memory of types of its own. It has one
// part for each of part_of(window_carrier), or fewer: as many as there are types.
//
//     margin | windows with keys: type RDMA | margin | staged type | margin | direct type | margin
//
// Stock UCP takes an address for host memory, and reads it, unless the memory type cache says otherwise. So the parts
// have entries in that cache, with their margins, made together with the arena. UCM's events for mapping and unmapping
// parts of the arena leave these entries alone, because the cache listens to events of typed memory only. With
// UCX_MEMTYPE_CACHE=n UCP asks the memory domain instead.
//
// Example: auto a = arena::reserve(1ull << 40); ... (*a)->clear(0, 4096);
#pragma once

#include "slot_table.h"
#include "window_carrier.h"

#include "sys/error.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <ucs/memory/memory_type.h>

namespace ucxl
{

class arena
{
public:
    // Reserves whole slots of the slot table: the length is rounded down to slots, then halved until the system grants
    // it, but not below min_length (or the requested length, if that is less). All parts have one length; there are
    // no more than slots. Errors: no_memory, invalid_param (less than one slot).
    static constexpr std::size_t min_length = std::size_t{1} << 30;
    static result<std::unique_ptr<arena>> reserve(std::size_t length, const part_types& types = {});
    // Reserved addresses before and behind each part. No window gets them, so an address that a peer computes just
    // outside a window is nobody's memory.
    static constexpr std::size_t margin = slot_table::slot_length;
    ~arena();
    arena(const arena&)            = delete;
    arena& operator=(const arena&) = delete;

    std::byte* base() const { return _base; }      // behind the first margin
    std::size_t length() const { return _length; } // with the margin between the parts
    // The slots of each part, by part_of(), and its memory type. The last ones may be missing.
    std::span<const slot_area> parts() const { return {_parts.data(), _num_parts}; }
    ucs_memory_type_t type_of(std::size_t part) const { return _types[part]; }

    // Adds the entries to the memory type cache. Repeating it costs little and changes nothing.
    void announce() const;
    // Puts plain reserved addresses in place of whatever was mapped. UCM reports the range as unmapped, so registration
    // caches drop it. Offset and length are whole pages. Errors: no_memory.
    result<void> clear(std::uint64_t offset, std::size_t length) const;
    // Maps `length` bytes of the file there, shared. Errors: no_memory, invalid_param (the message has errno).
    result<void> map_file(std::uint64_t offset, std::size_t length, int fd, std::uint64_t file_offset) const;

private:
    using type_list = std::array<ucs_memory_type_t, num_window_parts>;

    arena(std::byte* base, std::size_t slots_of_part, std::size_t num_parts, const type_list& types);

    std::byte* _base;
    std::size_t _length;
    std::size_t _num_parts;
    std::array<slot_area, num_window_parts> _parts;
    type_list _types;
};

} // namespace ucxl

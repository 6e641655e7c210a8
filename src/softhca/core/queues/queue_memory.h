// Reads and writes queues and doorbell records in the memory of their owners.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "softhca/core/arena/arena.h"

namespace ucxl::softhca
{

// A part of a queue as a piece to move. Nothing when the queue is shorter.
inline std::optional<piece> part_of(const process_memory& memory, std::uint64_t offset, std::uint64_t length)
{
    if (offset > memory.length || length > memory.length - offset) {
        return std::nullopt;
    }
    return piece{space::process, memory.client, memory.address + offset, length};
}

// Bytes of the model itself as a piece.
inline piece own_piece(const environment& device, const void* bytes, std::uint64_t length)
{
    return {space::engine, device.self, reinterpret_cast<std::uintptr_t>(bytes), length};
}

enum class queue_access : std::uint8_t {
    ok,
    broken, // no such memory
    gone,   // its process has ended
};

inline queue_access read_queue(environment& device, std::span<const piece> from, void* to, std::uint64_t length)
{
    const piece own = own_piece(device, to, length);
    switch (device.outside.move({&own, 1}, from)) {
    case move_status::ok:
        return queue_access::ok;
    case move_status::gone_to:
    case move_status::gone_from:
        return queue_access::gone;
    case move_status::fault_to:
    case move_status::fault_from:
        break;
    }
    return queue_access::broken;
}

} // namespace ucxl::softhca

// System V segments (shmget(2)) of a peer: UCX puts memory there that it allocates for MPI_Win_allocate of Open MPI.
// The number of a segment may be a lie, or mean another segment in another name space. So it is attached only if the
// peer made it, and it belongs to the same user.
//
// Example: const auto range  = shared_range_around(base, length);
//          const auto number = number_of_segment(*range);
//          auto attached     = peer_segment::attach(pid, *number, range->file_offset_of(base) + length);
#pragma once

#include "error.h"
#include "mapped_ranges.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <sys/types.h>

namespace ucxl
{

// For shmat(2). None if the range does not show a segment.
std::optional<std::int32_t> number_of_segment(const mapped_range& range);

class peer_segment
{
public:
    peer_segment() = default;
    // For reading and writing, detached with its owner. Errors: invalid_param, with the reason.
    static result<peer_segment> attach(pid_t maker, std::int32_t number, std::uint64_t min_length);
    peer_segment(peer_segment&& other) noexcept : _start(std::exchange(other._start, nullptr)) {}
    peer_segment& operator=(peer_segment&& other) noexcept
    {
        peer_segment moved(std::move(other));
        std::swap(_start, moved._start);
        return *this;
    }
    ~peer_segment();

    std::byte* start() const { return _start; }

private:
    explicit peer_segment(std::byte* start) : _start(start) {}

    std::byte* _start = nullptr;
};

} // namespace ucxl

#include "peer_segment.h"

#include "mapped_ranges.h"

#include <cerrno>
#include <cstring>
#include <format>
#include <limits>

#include <sys/shm.h>
#include <unistd.h>

namespace ucxl
{

std::optional<place_in_segment> find_segment(const void* start, std::uint64_t length)
{
    const auto first  = reinterpret_cast<std::uintptr_t>(start);
    const auto ranges = mapped_ranges_of(0, {first, first + length}, false);
    // Its inode is its number.
    if (ranges.size() != 1 || !ranges[0].is_shared() || !ranges[0].name.starts_with("/SYSV") ||
        ranges[0].start > first || ranges[0].end < first + length ||
        ranges[0].inode > std::numeric_limits<std::int32_t>::max()) {
        return std::nullopt;
    }
    return place_in_segment{static_cast<std::int32_t>(ranges[0].inode),
                            ranges[0].file_offset + (first - ranges[0].start)};
}

result<peer_segment> peer_segment::attach(pid_t maker, std::int32_t number, std::uint64_t min_length)
{
    const auto is_right = [&] {
        shmid_ds status{};
        return shmctl(number, IPC_STAT, &status) == 0 && status.shm_cpid == maker && status.shm_perm.uid == geteuid() &&
               status.shm_segsz >= min_length;
    };
    if (!is_right()) {
        return fail(errc::invalid_param, std::format("segment {} is not that of process {}", number, maker));
    }
    void* const start = shmat(number, nullptr, 0);
    if (start == reinterpret_cast<void*>(-1)) {
        return fail(errc::invalid_param, std::format("segment {}: {}", number, std::strerror(errno)));
    }
    peer_segment attached(static_cast<std::byte*>(start));
    // In between its number may have become another one's.
    if (!is_right()) {
        return fail(errc::invalid_param, std::format("segment {} has ended", number));
    }
    return attached;
}

peer_segment::~peer_segment()
{
    if (_start != nullptr) {
        shmdt(_start);
    }
}

} // namespace ucxl

#include "peer_segment.h"

#include <cerrno>
#include <cstring>
#include <format>
#include <limits>

#include <sys/shm.h>
#include <unistd.h>

namespace ucxl
{

std::optional<std::int32_t> number_of_segment(const mapped_range& range)
{
    // The inode is the number.
    const bool is_segment =
        range.is_shared() && range.name.starts_with("/SYSV") && range.inode <= std::numeric_limits<std::int32_t>::max();
    return is_segment ? std::optional(static_cast<std::int32_t>(range.inode)) : std::nullopt;
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

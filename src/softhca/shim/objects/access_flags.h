// The access flags of memory and queue pairs, as verbs has them (IB_ACCESS_*).
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include <cerrno>
#include <cstdint>

namespace ucxl::softhca
{

inline constexpr std::uint32_t known_access = (IB_UVERBS_ACCESS_FLUSH_PERSISTENT << 1) - 1;

// Whether the device may write to such memory, so that the program needs pages of its own there.
constexpr bool writes_memory(std::uint32_t access)
{
    return (access & (IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC |
                      IB_UVERBS_ACCESS_MW_BIND)) != 0;
}

// 0 or an errno.
constexpr int check_access_flags(std::uint32_t access)
{
    if ((access & (IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC)) != 0 &&
        (access & IB_UVERBS_ACCESS_LOCAL_WRITE) == 0) {
        return EINVAL;
    }
    if ((access & ~(known_access | IB_UVERBS_ACCESS_OPTIONAL_RANGE)) != 0) {
        return EINVAL;
    }
    const std::uint32_t missing =
        IB_UVERBS_ACCESS_ON_DEMAND | IB_UVERBS_ACCESS_FLUSH_GLOBAL | IB_UVERBS_ACCESS_FLUSH_PERSISTENT;
    return (access & missing) != 0 ? EOPNOTSUPP : 0;
}

} // namespace ucxl::softhca

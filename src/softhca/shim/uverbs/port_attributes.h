// The only port of every function.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include <cstdint>

#include "softhca/shim/objects/device_file.h"

namespace ucxl::softhca
{

inline constexpr std::uint32_t only_port = 1;

// 0 or an errno.
int port_attributes(device_file& file, std::uint64_t port, ib_uverbs_query_port_resp_ex& response);

} // namespace ucxl::softhca

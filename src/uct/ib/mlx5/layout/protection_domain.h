// The number of a protection domain, as commands to the device name it.
#pragma once

#include <cstdint>

#include <infiniband/verbs.h>

#include "sys/error.h"

namespace ucxl::mlx5
{

result<std::uint32_t> protection_domain_number(ibv_pd* pd);

} // namespace ucxl::mlx5

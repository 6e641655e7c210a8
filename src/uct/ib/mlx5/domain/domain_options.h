// What the options of hardware keys, UCX_LAYOUT_KEYS_*, say to the domains.
#pragma once

#include "ucs/window/key_options.h"
#include "uct/ib/mlx5/layout/domain.h"

namespace ucxl::mlx5
{

same_host_option same_host();

// Makes UCX_LAYOUT_KEYS_SPARE keys in advance. A device that gives fewer is no error.
void stock_keys(domain& domain);

} // namespace ucxl::mlx5

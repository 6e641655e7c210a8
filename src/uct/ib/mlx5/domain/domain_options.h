// Options of hardware keys for windows, UCX_LAYOUT_KEYS_*. Read when the library is loaded.
#pragma once

#include "uct/ib/mlx5/layout/domain.h"

#include <cstdint>

namespace ucxl::mlx5
{

// UCX_LAYOUT_KEYS_SAME_HOST: whether peers on this host use the device.
enum class same_host_choice : std::uint8_t {
    automatic, // if there is no faster way
    always,
    never,
};

same_host_choice same_host();

// Makes UCX_LAYOUT_KEYS_SPARE keys in advance. A device that gives fewer is no error.
void stock_keys(domain& domain);

} // namespace ucxl::mlx5

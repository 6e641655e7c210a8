// Options of layout keys, read from UCX_LAYOUT_KEYS_* when a domain is opened; `ucx_info -cf` lists them.
#pragma once

#include <cstdint>

namespace ucxl::mlx5
{

// UCX_LAYOUT_KEYS_ADDRESS: how regions come to a virtual address.
enum class address_choice : std::uint8_t {
    automatic, // as the self-test finds
    umr,       // by the bind request
    ksm,       // by a key of fixed entities over one that begins at 0
};

address_choice chosen_address_method();

} // namespace ucxl::mlx5

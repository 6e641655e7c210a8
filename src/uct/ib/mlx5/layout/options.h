// Options of layout keys. Opening a domain reads them from UCX_LAYOUT_KEYS_*; `ucx_info -cf` lists them.
#pragma once

#include <cstdint>

namespace ucxl::mlx5
{

// UCX_LAYOUT_KEYS_ADDRESS: how a region gets its virtual address.
enum class address_choice : std::uint8_t {
    automatic, // the way that the self-test finds
    umr,       // the bind request moves the start of the key
    ksm,       // a key of fixed entities lies over a key that begins at 0
};

struct key_options {
    int address;    // address_choice
    int same_host;  // see domain/domain_options.h
    unsigned spare; // keys
};

key_options read_key_options();
address_choice chosen_address_method();

} // namespace ucxl::mlx5

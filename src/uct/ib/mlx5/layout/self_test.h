// What a device really does of what its capabilities say: tried through the loopback of the bind queue when a domain is
// opened, with a few bytes of memory and keys of its own.
#pragma once

#include "bind_queue.h"
#include "capabilities.h"
#include "options.h"

namespace ucxl::mlx5
{

// How a key gets to a virtual address.
enum class address_method : std::uint8_t {
    none,
    umr, // its bind request says where it starts
    ksm, // address_overlay
};

struct self_test_result {
    bool repeat_blocks     = false;
    bool nesting           = false; // keys over keys
    bool atomics           = false; // through keys of every kind that works
    address_method address = address_method::none;
};

// An error where not even a list shows the memory it lists, or something other than the device's answer went wrong.
result<self_test_result> test_device(ibv_pd* pd, bind_queue& queue, const capabilities& said, address_choice wanted);

} // namespace ucxl::mlx5

// Local use of one card's memory through another card. No card reaches the memory of another one, and UCP chooses
// transports by the type of memory, so it may send from that memory, or receive into it, through any card. Such an
// operation is run with a copy in host memory, which the CPU fills before or reads afterwards.
#pragma once

#include "abi/zcopy_layer.h"

#include <span>

namespace ucxl::mlx5
{

// As the functions of abi::zcopy_layer.
bool has_unreachable_memory(std::span<const uct_iov_t> parts);
ucs_status_t run_with_copies(const abi::zcopy_call& call);

} // namespace ucxl::mlx5

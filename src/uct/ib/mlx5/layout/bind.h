// Regions brought into force and taken back, many at a time. All of one call are of one domain.
#pragma once

#include <span>

#include "region.h"

namespace ucxl::mlx5
{

// Binds what all of them have prepared, in one batch, and waits; `replace` takes the layouts they have away first.
// After a failure none of them has a layout.
result<void> bind_all(std::span<region* const> regions, bool replace);

result<void> invalidate_all(std::span<region* const> regions);

// Posts the same to a queue pair of the caller, and goes on.
result<void> post_all(ibv_qp* qp, std::span<region* const> regions, std::uint64_t wr_id, bool signaled);

} // namespace ucxl::mlx5

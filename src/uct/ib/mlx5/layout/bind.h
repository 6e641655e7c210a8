// Binds and invalidates regions, many at a time. All regions of a call are of one domain.
#pragma once

#include <span>

#include "region.h"

namespace ucxl::mlx5
{

// Binds the prepared layouts of all regions in one batch, and waits. With `replace` it removes their current layouts
// first. After a failure no region has a layout.
result<void> bind_all(std::span<region* const> regions, bool replace);

result<void> invalidate_all(std::span<region* const> regions);

// Invalidates the first key of the region, or binds it again. The region keeps its layout. After a failed resumption it
// stays suspended; after a failed suspension its keys are never used for anything else.
result<void> suspend(region& region);
result<void> resume(region& region);

// Posts the same requests to a queue pair of the caller, and does not wait.
result<void> post_all(ibv_qp* qp, std::span<region* const> regions, std::uint64_t wr_id, bool signaled);

} // namespace ucxl::mlx5

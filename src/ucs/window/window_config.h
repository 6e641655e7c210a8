// The options of the window registry, UCX_LAYOUT_*, in UCX's configuration system: `ucx_info -cf` shows them.
#pragma once

#include "sys/error.h"

#include <cstddef>

namespace ucxl
{

struct window_config {
    std::size_t arena_length; // UCX_LAYOUT_ARENA_SIZE, bytes
    std::size_t stream_min;   // UCX_LAYOUT_STREAM_MIN, bytes or UCS_MEMUNITS_AUTO or _INF
    int huge_pages;           // UCX_LAYOUT_HUGE_PAGES, huge_pages_option of region.h
};

// Reads the environment. Errors: invalid_param.
result<window_config> read_window_config();

// Adds the table to UCX's list of tables, once, and reads it, so that UCX does not report its variables as unused. Sets
// the streaming limit of pack plans.
void register_window_config();

} // namespace ucxl

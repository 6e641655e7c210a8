// Who moves the bytes of a window, and why.
#pragma once

#include "window_cache.h"

#include <optional>
#include <string>

namespace ucxl
{

struct carrier_choice {
    ucp_layout_carrier_t carrier = UCP_LAYOUT_CARRIER_UNDECIDED;
    std::string why_no_key; // empty if it has a key
};

// Of a window without a hardware key: whether peers of this host reach its memory in one pass, or all copies go through
// a buffer. None: they may try, but gain nothing. Memory of the application is reached by the kernel, which is fast for
// long blocks only. Throws std::bad_alloc.
std::optional<window_carrier> carrier_without_keys(const layout& layout, bool has_shared_memory);

// At present. Throws std::bad_alloc.
carrier_choice carrier_of(const cached_window& cached);

} // namespace ucxl

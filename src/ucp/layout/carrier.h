// Who moves the bytes of a window, and why.
#pragma once

#include "window_cache.h"

#include <string>

namespace ucxl
{

struct carrier_choice {
    bool has_key = false;
    std::string why_copied; // empty if it has a key
};

// At present. Throws std::bad_alloc.
carrier_choice carrier_of(const cached_window& cached);

} // namespace ucxl

// What `bench device` moves: all exchanges of the demo, and two larger caches.
#pragma once

#include "examples/demo/pattern.h"

namespace ucxl::bench
{

examples::pattern_list device_patterns();

} // namespace ucxl::bench

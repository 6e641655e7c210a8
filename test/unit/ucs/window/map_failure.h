// Makes mmap() of this program fail on demand.
#pragma once

#include <cstdint>

namespace ucxl::test
{

// How many more calls of mmap() in this thread succeed before one fails with ENOMEM; negative: none fails.
void fail_map_after(std::int64_t calls);

} // namespace ucxl::test

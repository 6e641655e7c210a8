// Makes mmap() and madvise() of this program fail on demand.
#pragma once

#include <cstdint>

namespace ucxl::test
{

// How many more calls of mmap() in this thread succeed before one fails with ENOMEM; negative: none fails.
void fail_map_after(std::int64_t calls);
// Whether madvise() of this thread fails with EINVAL, as with a kernel that knows no advice.
void fail_advice(bool always);

} // namespace ucxl::test

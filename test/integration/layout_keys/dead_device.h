// A program whose device fails for good while it uses layout keys: the fault has to be fatal:rdma_read.
#pragma once

namespace ucxl::test
{

// 0 where every call said so and nothing hung; else 1 and lines that say what was wrong.
int dead_device();

} // namespace ucxl::test

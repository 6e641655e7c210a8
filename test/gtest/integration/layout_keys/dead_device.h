// A program whose device fails for good while it uses layout keys. The fault must be fatal:rdma_read.
#pragma once

namespace ucxl::test
{

// Returns 0 if every call reported the failure and nothing hung; otherwise 1, and prints what was wrong.
int dead_device();

} // namespace ucxl::test

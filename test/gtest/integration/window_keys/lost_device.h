// A process whose device is lost while windows have keys. It is one of its own, because UCX's worker can neither be
// used nor destroyed then (test_lost_device.cc).
#pragma once

namespace ucxl::test
{

// main() of the process: `kind` is "fatal" or "remove", `occasion` what the device does at that moment ("rdma_read",
// "umr"). Says what is wrong, and does not return.
[[noreturn]] void lose_device(const char* kind, const char* occasion);

// The same, while the DPU uses memory of the host.
void lose_device_of_imports(const char* kind);

} // namespace ucxl::test

// Whether the software device is what runs. It works in the thread that posts a work request, in the handler of the
// signal that a store to a doorbell page raises (docs/decisions/0006-doorbells-that-trap.md).
#pragma once

namespace ucxl::bench
{

// From now on the handler is watched. The process must have used the device already. Throws std::runtime_error.
void watch_device();

// Whether the calling thread is in the handler. In any thread, at any time.
bool is_in_device();

} // namespace ucxl::bench

// Atomics on windows of peers, at the initiator.
//
// UCP asks a target to do atomics in software only if the endpoint has no lane for atomics of a device. So it can do
// none on a window that the device cannot reach: one that is copied, or one of the same host, whose key was refused for
// the sake of puts and gets. For these, UCP is made to offer them. The target's handler (requests.h) does the rest.
//
// Invariant: a window that a device reaches by a lane for atomics, and all memory that is no window, stays with UCP's
// own choice. Host memory would lose atomicity: peers may use the device there.
#pragma once

namespace ucxl
{

// Called once, before any worker exists. Returns false and changes nothing if libucp's protocols are not the known
// ones.
bool hook_offers();

} // namespace ucxl

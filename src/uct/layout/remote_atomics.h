// Remote atomic operations on windows, at their target.
//
// UCP has an atomic on a window done by its target in software: an active message, whose handler in libucp loads and
// stores at the window's address. Nothing is accessible there, unless the window is one mapped block. So a handler of
// ours comes first: it does the operation on the memory the address stands for, and then gives libucp's handler the
// same request for a word of its own that holds the old value; libucp answers the peer from that.
//
// A word can be operated on if it is inside one block and aligned in memory to its size. Any other one of the window
// arena is refused: one error is logged at the target, no memory changes, and a fetch gets 0; the protocol has no way
// to tell the peer.
//
// Invariant: requests for addresses outside the arena reach libucp as they came.
#pragma once

namespace ucxl
{

// Puts the handler in front of libucp's, for all workers made from now on. Called once, before any worker exists.
// False, and nothing is changed, if libucp's handler is not the known one.
bool serve_remote_atomics();

} // namespace ucxl

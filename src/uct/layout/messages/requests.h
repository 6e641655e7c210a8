// Remote access by messages, on both of its ends.
//
// Where no transport of the initiator reaches a window, UCP sends a message, and a handler of libucp at the target
// loads and stores at the address in it, whatever that address is. Nothing of a window is accessible there (unless it
// is one mapped block), and libucp's completions carry no status. So handlers of ours come first:
//
//     put      stored into the memory that the window shows
//     get      left to libucp, which stages it through lay_copy, if the whole range is in one live window
//     atomic   done on the memory that the window shows; libucp then gets the request for a word of its own, and
//              answers from that. A word has to be inside one block and aligned in memory to its size
//
// A request on a range that is (partly) in the arena or of memory type RDMA, and not in one live window, is refused.
// The initiator of a get or of an atomic with a result gets an empty reply, which UCP never sends by itself, and its
// handler ends the request with an error. A put, or an atomic without a result, has ended when it was sent: the
// initiator gets a notice for failure.h, and the flush is answered as ever.
//
// Invariant: requests for other memory, and replies to them, reach libucp as they came.
#pragma once

namespace ucxl
{

// Each puts its handler in front of libucp's, for all workers made from now on. Called once, before any worker exists.
// False, and nothing is changed, if libucp's handlers are not the known ones.
bool hook_puts();
bool hook_gets();
bool hook_atomics();
bool hook_replies();

} // namespace ucxl

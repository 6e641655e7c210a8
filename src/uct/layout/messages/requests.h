// Remote access by messages, at the target and at the initiator.
//
// Where no transport of the initiator reaches a window, UCP sends a message, and a handler of libucp at the target
// loads and stores at the address in it without any check. The addresses of a window are not accessible (unless it is
// one mapped block), and libucp's completions carry no status. So our handlers run first:
//
//     put      stores into the memory that the window shows
//     get      leaves it to libucp, which stages it through lay_copy, if the whole range is in one live window
//     atomic   operates on the memory that the window shows; libucp then gets the request for a word of our own, and
//              answers with that word. A word must lie inside one block and be aligned in memory to its size
//
// A request is refused if its range is at least partly in the arena or of memory type RDMA, and not inside one live
// window. The initiator of a get, or of an atomic with a result, gets an empty reply. UCP itself never sends one, and
// our handler of it ends the request with an error. A put, or an atomic without a result, is complete when it is sent:
// its initiator gets a notice for failure.h, and a flush is answered as usual.
//
// Invariant: requests for other memory, and their replies, reach libucp unchanged.
#pragma once

namespace ucxl
{

// Each function puts its handler in front of libucp's for all workers made from now on. Called once, before any worker
// exists. Returns false and changes nothing if libucp's handlers are not the known ones.
bool hook_puts();
bool hook_gets();
bool hook_atomics();
bool hook_replies();

} // namespace ucxl

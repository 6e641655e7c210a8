// The pipe of an event channel: the program reads events from one end, and any process that has an event for it writes
// to the other.
//
// Invariant: the pipe has whole events of one size, in the order they came. Only holders of the fabric's lock write. A
// reader needs no lock, so a signal handler may read.
//
//     append_event(pipe, event)          grows the pipe where it is full
//     remove_events(pipe, 16, value)     of an object that is gone; the others stay
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl::softhca
{

// `pipe`: a descriptor that writes without blocking. False when the pipe is full and the system does not let it grow,
// or it is not a pipe.
bool append_event(int pipe, std::span<const std::byte> event);

// Removes the unread events with that value (first 8 bytes) and returns how many there were. `pipe`: a descriptor that
// reads and writes without blocking. Between two system calls readers find the pipe empty.
std::uint32_t remove_events(int pipe, std::size_t event_bytes, std::uint64_t value);

} // namespace ucxl::softhca

// The pipe behind an event channel: the program reads events from one end, whoever tells it of something writes to the
// other one, from any process.
//
// Invariant: whole events of one size, in the order they came. Only holders of the fabric's lock write. A reader needs
// no lock, so that a handler of a signal may read.
//
//     append_event(pipe, event)          grows the pipe where it is full
//     remove_events(pipe, 16, value)     of an object that is gone; the others stay
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucxl::softhca
{

// `pipe` is a descriptor that writes without blocking. False: the pipe has no room and the system lets it have no more,
// or it is none.
bool append_event(int pipe, std::span<const std::byte> event);

// Takes out the unread events with that value (first 8 bytes) and returns how many there were. `pipe` is a descriptor
// that reads and writes without blocking. Readers find the pipe empty for the moment between two system calls.
std::uint32_t remove_events(int pipe, std::size_t event_bytes, std::uint64_t value);

} // namespace ucxl::softhca

// Tests which reported capabilities of the device really work. When a domain is opened, the bind queue's loopback tries
// them with a few bytes of memory and keys of its own. What a card refuses at the use of a key ends the connection of
// the peer, so each use that the library makes of keys is tried: writes and atomics by lists, by repeat blocks, by both
// in each other as deep as the device says, with the rights and the start address that windows have.
#pragma once

#include "bind_queue.h"
#include "capabilities.h"
#include "options.h"

#include <string>

namespace ucxl::mlx5
{

// How a key gets its virtual address.
enum class address_method : std::uint8_t {
    none,
    umr, // the bind request sets its start
    ksm, // an address_overlay
};

struct self_test_result {
    bool repeat_blocks          = false;
    bool pointer_entries        = false; // lists in memory
    unsigned levels             = 1;     // of keys over keys
    bool nested_by_local_rights = false;
    bool atomics                = false; // through every kind of key that works
    bool sets_atomic_right      = true;  // by bind requests
    address_method address      = address_method::none;
    // Of what does not work, what the device said to the last try.
    std::string atomics_refusal{};
    std::string address_refusal{}; // to a start address
};

// In brackets after a text that says what does not work. Empty for an empty refusal.
std::string in_brackets(const std::string& refusal);

// Fails if not even a list shows its memory, or if something other than the tested capability goes wrong.
result<self_test_result> test_device(ibv_pd* pd, bind_queue& queue, const capabilities& said,
                                     key_address_option wanted);

} // namespace ucxl::mlx5

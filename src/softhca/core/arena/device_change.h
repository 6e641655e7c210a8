// What an operator sees happen to a device: its port goes down and up, its firmware fails, it leaves the bus and comes
// back, a function is reset. --fault and softhca-run --change bring it about, at a work request, at a time, or now.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "objects.h"

namespace ucxl::softhca
{

enum class change_kind : std::uint8_t {
    none,
    port_down, // of one function
    port_up,
    fatal,   // the firmware of the card fails, with all functions of it
    remove,  // the card leaves the bus
    recover, // the card is back, with all functions; contexts from before stay dead
    reset,   // of one function, which works on at once; contexts from before are dead
};

struct device_change {
    change_kind kind     = change_kind::none;
    function_id function = 0;
    std::uint16_t lid    = 0; // of port_up: the port's new local identifier, 0 for the same one
    std::uint64_t at_ns  = 0; // of a scheduled change
};

// Changes that come at their time. They are applied by whichever process notices first.
struct change_schedule {
    static constexpr std::size_t capacity = 32;

    std::uint64_t next_ns; // of the earliest one, 0 for none
    std::array<device_change, capacity> entries;
};

} // namespace ucxl::softhca

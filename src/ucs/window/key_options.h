// Options of hardware keys, UCX_LAYOUT_KEYS_*. libucp_layout and libuct_mlx5_layout both read them, each for itself.
// Only libucp_layout shows them to UCX: it is there without devices, too, where a variable that is set must not count
// as unused.
#pragma once

#include <cstdint>

namespace ucxl
{

// UCX_LAYOUT_KEYS_WINDOWS: which windows network cards may register.
enum class window_carrier_option : std::uint8_t { automatic, keys, copies };

// UCX_LAYOUT_KEYS_SAME_HOST: whether peers on this host use the device.
enum class same_host_option : std::uint8_t {
    automatic, // if there is no faster way
    always,
    never,
};

// UCX_LAYOUT_KEYS_ADDRESS: how a region gets its virtual address.
enum class key_address_option : std::uint8_t {
    automatic, // the way that the self-test finds
    umr,       // the bind request moves the start of the key
    ksm,       // a key of fixed entities lies over a key that begins at 0
};

struct key_options {
    int enable;     // 0 or 1
    int windows;    // window_carrier_option
    int same_host;  // same_host_option
    unsigned spare; // keys to make in advance
    int address;    // key_address_option
    unsigned exported_spare;
    unsigned aliases; // unused ones to keep
};

// Reads the environment now. What is wrong is logged, and the defaults are taken.
key_options read_key_options();
// Adds them to the options of the UCX in use.
void publish_key_options();

} // namespace ucxl

// Options of hardware keys, UCX_LAYOUT_KEYS_*. libucp_layout and libuct_mlx5_layout both read them, each for itself.
// Only libucp_layout shows them to UCX: it is there without devices, too, where a variable that is set must not count
// as unused.
#pragma once

#include <cstdint>

namespace ucxl
{

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

// UCX_LAYOUT_KEYS_EXPORT_EMPTY: what an export does if no key is ready for it.
enum class empty_pool_option : std::uint8_t {
    grow,  // makes one more for the pool
    wait,  // until one comes back or a thread has made it
    fresh, // takes one that is made for this buffer and ends with it
};

struct export_options {
    unsigned spare;               // keys of each size to keep ready, and as many rest
    unsigned max;                 // keys that exist
    empty_pool_option when_empty; // for memory that needs a key now
    double wait;                  // seconds
    double idle;                  // seconds after which unused keys beyond `spare` end
};

struct key_options {
    int enable;       // 0 or 1
    int windows;      // window_carrier; undecided: auto
    int same_host;    // same_host_option
    unsigned spare;   // keys to make in advance
    int address;      // key_address_option
    unsigned aliases; // unused ones to keep
    unsigned export_spare;
    unsigned export_max;
    int export_empty;   // empty_pool_option
    double export_wait; // seconds
    double export_idle; // seconds

    export_options for_export() const
    {
        return {export_spare, export_max, static_cast<empty_pool_option>(export_empty), export_wait, export_idle};
    }
};

// Reads the environment now. What is wrong is logged, and the defaults are taken.
key_options read_key_options();
// Adds them to the options of the UCX in use.
void publish_key_options();

} // namespace ucxl

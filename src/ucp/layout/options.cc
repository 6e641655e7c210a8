#include "options.h"

#include "ucs/sys/option_table.h"

namespace ucxl
{

namespace
{

struct map_options {
    unsigned cache_size;
};

constexpr map_options map_defaults{.cache_size = 1024};

constexpr abi::option map_table_options[] = {
    {"MAP_CACHE_SIZE", "1024",
     "Windows to keep after their last unmap, so that mapping the same layout and base addresses again is cheap.\n"
     "0 keeps none. A kept window costs reserved addresses and some hundred bytes, no memory of the application.",
     offsetof(map_options, cache_size), abi::option_type::unsigned_integer},
};

constinit option_table<map_options> map_table("layout window cache", "LAYOUT_", map_table_options);

struct key_options {
    int enable;
    int carrier;
};

constexpr key_options key_defaults{.enable = 1, .carrier = 0};

const char* switch_names[] = {"n", "y", nullptr};
// In the order of window_carrier_option.
const char* carrier_names[] = {"auto", "keys", "copies", nullptr};

constexpr abi::option key_table_options[] = {
    {"ENABLE", "y",
     "Whether windows and memory of the device get hardware keys under UCX's own mlx5 transports (y or n). With n,\n"
     "UCX's memory domains of RDMA devices stay exactly as they are, and the CPU copies windows.",
     offsetof(key_options, enable), abi::option_type::name, switch_names},
    {"WINDOWS", "auto",
     "Which windows network cards may reach by hardware keys: auto (where a card can have a key and follows the layout\n"
     "about as fast as a CPU copies it), keys (wherever a card can have one), or copies (none: the CPU copies all\n"
     "windows).",
     offsetof(key_options, carrier), abi::option_type::name, carrier_names},
};

constinit option_table<key_options> key_table("layout hardware keys", "LAYOUT_KEYS_", key_table_options);

const map_options& read_map_options()
{
    static const map_options values = map_table.read_or(map_defaults);
    return values;
}

const key_options& read_key_options()
{
    static const key_options values = key_table.read_or(key_defaults);
    return values;
}

} // namespace

void register_map_options()
{
    map_table.add();
    key_table.add();
    // Read now, because ucp_init reports variables that nobody has read as unused.
    static_cast<void>(read_map_options());
    static_cast<void>(read_key_options());
}

std::size_t map_cache_size()
{
    return read_map_options().cache_size;
}

bool are_hardware_keys_enabled()
{
    return read_key_options().enable != 0;
}

window_carrier_option carrier_option()
{
    return static_cast<window_carrier_option>(read_key_options().carrier);
}

} // namespace ucxl

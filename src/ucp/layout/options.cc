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

const map_options& read_map_options()
{
    static const map_options values = map_table.read_or(map_defaults);
    return values;
}

const key_options& key_values()
{
    static const key_options values = read_key_options();
    return values;
}

} // namespace

void register_map_options()
{
    map_table.add();
    publish_key_options();
    // Read now, because ucp_init reports variables that nobody has read as unused.
    static_cast<void>(read_map_options());
    static_cast<void>(key_values());
}

std::size_t map_cache_size()
{
    return read_map_options().cache_size;
}

bool are_hardware_keys_enabled()
{
    return key_values().enable != 0;
}

window_carrier_option carrier_option()
{
    return static_cast<window_carrier_option>(key_values().windows);
}

} // namespace ucxl

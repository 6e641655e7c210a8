#include "options.h"

#include "ucs/sys/option_table.h"

namespace ucxl
{

namespace
{

struct map_options {
    unsigned cache_size;
};

constexpr map_options defaults{.cache_size = 1024};

constexpr abi::option options[] = {
    {"MAP_CACHE_SIZE", "1024",
     "Windows to keep after their last unmap, so that mapping the same layout and base addresses again is cheap.\n"
     "0 keeps none. A kept window costs reserved addresses and some hundred bytes, no memory of the application.",
     offsetof(map_options, cache_size), abi::option_type::unsigned_integer},
};

constinit option_table<map_options> table("layout window cache", "LAYOUT_", options);

struct key_options {
    int enable;
};

const char* switch_names[] = {"n", "y", nullptr};

constexpr key_options key_defaults{.enable = 1};

constexpr abi::option key_table_options[] = {
    {"ENABLE", "y",
     "Whether windows and memory of the device get hardware keys under UCX's own mlx5 transports (y or n). With n, "
     "UCX's\n"
     "memory domains of RDMA devices stay exactly as they are, and the CPU copies windows.",
     offsetof(key_options, enable), abi::option_type::name, switch_names},
};

constinit option_table<key_options> key_table("layout hardware keys", "LAYOUT_KEYS_", key_table_options);

} // namespace

void register_map_options()
{
    table.add();
    key_table.add();
    static_cast<void>(are_hardware_keys_enabled());
    static_cast<void>(map_cache_size()); // read now, because ucp_init reports variables that nobody has read as unused
}

std::size_t map_cache_size()
{
    static const std::size_t size = table.read_or(defaults).cache_size;
    return size;
}

bool are_hardware_keys_enabled()
{
    static const bool is_enabled = key_table.read_or(key_defaults).enable != 0;
    return is_enabled;
}

} // namespace ucxl

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

} // namespace

void register_map_options()
{
    table.add();
    static_cast<void>(map_cache_size()); // read now, because ucp_init reports variables that nobody has read as unused
}

std::size_t map_cache_size()
{
    static const std::size_t size = table.read_or(defaults).cache_size;
    return size;
}

} // namespace ucxl

#include "options.h"

#include "ucs/sys/option_table.h"

#include <ucs/sys/string.h>

namespace ucxl
{

namespace
{

struct map_options {
    unsigned cache_size;
    std::size_t direct_shm_min;
    std::size_t direct_cma_min;
    std::size_t heap_min;
    std::size_t heap_limit;
};

constexpr map_options map_defaults{.cache_size     = 1024,
                                   .direct_shm_min = std::size_t{512} << 10,
                                   .direct_cma_min = std::size_t{8} << 20,
                                   .heap_min       = std::size_t{128} << 10,
                                   .heap_limit     = UCS_MEMUNITS_AUTO};

constexpr abi::option map_table_options[] = {
    {"MAP_CACHE_SIZE", "1024",
     "Windows to keep after their last unmap, so that mapping the same layout and base addresses again is cheap.\n"
     "0 keeps none. A kept window costs reserved addresses and some hundred bytes, no memory of the application.",
     offsetof(map_options, cache_size), abi::option_type::unsigned_integer},
    {"DIRECT_SHM_MIN", "512k",
     "Least length of a window over memory of the library whose messages between processes of a host go in one pass.\n"
     "Below it they are staged by UCX's own transports. Puts and gets always go in one pass.",
     offsetof(map_options, direct_shm_min), abi::option_type::memory_units},
    {"DIRECT_CMA_MIN", "8m", "The same for windows over long blocks of other memory, which the kernel copies.",
     offsetof(map_options, direct_cma_min), abi::option_type::memory_units},
    // The heap reads these itself, before UCX is there. They are here so that UCX knows them and shows them.
    {"HEAP_MIN", "128k", "Bytes from which on libucx_layout_heap puts an allocation into shared memory.",
     offsetof(map_options, heap_min), abi::option_type::memory_units},
    {"HEAP_LIMIT", "auto", "Addresses of libucx_layout_heap in bytes. auto: as many as the host has memory.",
     offsetof(map_options, heap_limit), abi::option_type::memory_units},
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

std::size_t least_direct_length(bool has_shared_memory)
{
    const map_options& values = read_map_options();
    return has_shared_memory ? values.direct_shm_min : values.direct_cma_min;
}

bool are_hardware_keys_enabled()
{
    return key_values().enable != 0;
}

window_carrier wanted_carrier()
{
    return static_cast<window_carrier>(key_values().windows);
}

} // namespace ucxl

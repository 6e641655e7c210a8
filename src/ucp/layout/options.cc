#include "options.h"

#include "ucs/sys/status.h"
#include "ucs/window/option_table.h"

#include <cstddef>
#include <cstdint>

namespace ucxl
{

namespace
{

struct map_options {
    unsigned cache_size;
};

ucs_config_field_t map_option_table[] = {
    {"MAP_CACHE_SIZE", "1024",
     "Windows kept after their last unmap, so that mapping the same layout and base addresses again is cheap.\n"
     "0 keeps none. A kept window costs reserved addresses and some hundred bytes, no memory of the application.",
     offsetof(map_options, cache_size), UCS_CONFIG_TYPE_UINT},
    {},
};

ucs_config_global_list_entry_t map_option_entry;

// Filled in here and not by an initialiser, which might run after this constructor and cut the entry out of the list
// again.
[[gnu::constructor]] void register_options()
{
    map_option_entry.name   = "layout windows";
    map_option_entry.prefix = "LAYOUT_";
    map_option_entry.table  = map_option_table;
    map_option_entry.size   = sizeof(map_options);
    ucs_list_add_tail(&ucs_config_global_list, &map_option_entry.list);
    static_cast<void>(map_cache_size()); // read now: ucp_init calls variables nobody has read unused
}

} // namespace

std::size_t map_cache_size()
{
    static const std::size_t size = [] {
        constexpr std::size_t otherwise = 1024;
        map_options options{};
        if (const auto read = read_options(&options, map_option_entry); !read) {
            ucs_error("%s; %zu is used", read.error().message.c_str(), otherwise);
            return otherwise;
        }
        return std::size_t{options.cache_size};
    }();
    return size;
}

} // namespace ucxl

#include "window_config.h"

#include "option_table.h"
#include "ucs/pack/streaming_limit.h"

#include <ucs/sys/string.h>

#include <mutex>

namespace ucxl
{

namespace
{

ucs_config_field_t fields[] = {
    {"ARENA_SIZE", "1t",
     "Addresses to reserve for windows. No memory is used for them. If so many cannot be reserved, half as many are\n"
     "tried, and so on.",
     offsetof(window_config, arena_length), UCS_CONFIG_TYPE_MEMUNITS},
    {"STREAM_MIN", "auto",
     "Memory under a layout of so many packed bytes and more is written past the caches where its blocks are long. "
     "auto\n"
     "measures with the first layout of 2 MB or more what is best on this machine. Read when the library is loaded.",
     offsetof(window_config, stream_min), UCS_CONFIG_TYPE_MEMUNITS},
    {}};

constinit ucs_config_global_list_entry_t table = {.name   = "layout windows",
                                                  .prefix = "LAYOUT_",
                                                  .table  = fields,
                                                  .size   = sizeof(window_config),
                                                  .list   = {},
                                                  .flags  = 0};

} // namespace

result<window_config> read_window_config()
{
    window_config config{};
    if (auto read = read_options(&config, table); !read) {
        return std::unexpected(read.error());
    }
    ucs_config_parser_release_opts(&config, fields);
    return config;
}

void register_window_config()
{
    static std::once_flag once;
    std::call_once(once, [] {
        ucs_list_add_tail(&ucs_config_global_list, &table.list);
        if (const auto config = read_window_config(); config && config->stream_min != UCS_MEMUNITS_AUTO) {
            set_streaming_limit(config->stream_min == UCS_MEMUNITS_INF ? no_streaming : config->stream_min);
        }
    });
}

} // namespace ucxl

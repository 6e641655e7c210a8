#include "window_config.h"

#include "ucs/pack/streaming_limit.h"
#include "ucs/sys/option_table.h"

#include <ucs/sys/string.h>

namespace ucxl
{

namespace
{

const char* huge_pages_names[] = {"try", "n", "y", nullptr};

constexpr abi::option fields[] = {
    {"ARENA_SIZE", "1t",
     "Bytes of addresses to reserve for windows, two thirds of them for windows that network cards never register.\n"
     "They use no memory. If the system refuses, the library tries half as many, and so on.",
     offsetof(window_config, arena_length), abi::option_type::memory_units},
    {"STREAM_MIN", "auto",
     "Packed bytes of a layout from which on its long blocks are written past the caches. auto is 8 MB, and the\n"
     "best value measured on this machine once 16 GB of such layouts were moved. Read when the library is loaded.",
     offsetof(window_config, stream_min), abi::option_type::memory_units},
    {"HUGE_PAGES", "try",
     "Huge pages for memory that the library allocates. Possible values are:\n"
     " y   - all of the memory, else allocation fails.\n"
     " n   - none.\n"
     " try - if the kernel has them, unless the blocks lie in less than a 16th of the memory.",
     offsetof(window_config, huge_pages), abi::option_type::name, huge_pages_names}};

constinit option_table<window_config> table("layout windows", "LAYOUT_", fields);

} // namespace

result<window_config> read_window_config()
{
    return table.read();
}

void register_window_config()
{
    table.add();
    // Read now: ucp_init calls variables nobody has read unused.
    if (const auto config = table.read(); config && config->stream_min != UCS_MEMUNITS_AUTO) {
        set_streaming_limit(config->stream_min == UCS_MEMUNITS_INF ? no_streaming : config->stream_min);
    }
}

} // namespace ucxl

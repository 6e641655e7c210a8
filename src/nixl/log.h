// What this backend has to say to people: one line on stderr, as NIXL's own log writes there.
//
// Example: log_error("region {}: it was deregistered", id);
#pragma once

#include <cstdio>
#include <format>
#include <string>

namespace ucxl::nixl
{

template <typename... Arguments>
void log_error(std::format_string<Arguments...> text, Arguments&&... arguments)
{
    std::fprintf(stderr, "NIXL backend UCX_LAYOUT: %s\n",
                 std::format(text, std::forward<Arguments>(arguments)...).c_str());
}

} // namespace ucxl::nixl

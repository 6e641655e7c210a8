// What the library says of its work in this process: a line of ucp_layout_print_windows(), summed over all devices.
#pragma once

#include <cstdint>
#include <string_view>

namespace examples
{

// name: as it is printed, "aliases". 0 if there is no such line.
std::uint64_t library_figure(std::string_view name);

} // namespace examples

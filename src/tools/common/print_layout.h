// ucp_layout_print() into a string, without the last newline.
#pragma once

#include <string>
#include <ucp_layout.hpp>

namespace ucxl::tools
{

std::string print_layout(const ucx_layout::layout& layout, unsigned what);

} // namespace ucxl::tools

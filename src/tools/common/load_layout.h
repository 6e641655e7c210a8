// Layouts as users of a tool write them: text in the grammar of ucp_layout_parse(), or "@FILE" with a JSON description.
#pragma once

#include <string>
#include <ucp_layout.hpp>

namespace ucxl::tools
{

ucx_layout::layout load_layout(const std::string& text_or_file);

std::string read_file(const std::string& path);

} // namespace ucxl::tools

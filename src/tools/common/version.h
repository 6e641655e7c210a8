// The text that --version prints.
#pragma once

#include "config.h"

#include <fmt/format.h>

#include <string>
#include <ucp/api/ucp.h>

namespace ucxl::tools
{

inline std::string version_text(const char* program)
{
    return fmt::format("{} {}, UCX {}", program, PACKAGE_VERSION, ucp_get_version_string());
}

} // namespace ucxl::tools

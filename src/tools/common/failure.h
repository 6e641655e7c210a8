// How the tools give up: in words, made by fmt.
#pragma once

#include "check.h"

#include <fmt/format.h>

namespace ucxl::tools
{

template <typename... Args>
[[noreturn]] void give_up(fmt::format_string<Args...> format, Args&&... args)
{
    throw failure(fmt::format(format, std::forward<Args>(args)...));
}

} // namespace ucxl::tools

// Why network cards do not carry a window, for messages of tests.
//
// Example: EXPECT_EQ(window.carrier(), UCP_LAYOUT_CARRIER_KEYS) << carrier_reason(window);
#pragma once

#include "check.h"

#include <ucp_layout.hpp>

#include <array>
#include <string>

namespace ucxl::test
{

// Empty if they do. Throws std::runtime_error.
inline std::string carrier_reason(const ucx_layout::window& window)
{
    std::array<char, 300> text{};
    check_ok(window.carrier_reason(text), "ucp_layout_window_carrier_reason");
    return text.data();
}

} // namespace ucxl::test

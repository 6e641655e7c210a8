// Numbers of the active messages of UCP that two workers exchange.
#pragma once

namespace ucxl::nixl
{

constexpr unsigned message_id = 0x4e; // what message.h has
constexpr unsigned data_id    = 0x4f; // data_header, and bytes that UCX brings to their place

} // namespace ucxl::nixl

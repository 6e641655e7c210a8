// The active messages of UCP that two workers exchange: their numbers, and how they are received.
#pragma once

#include <ucp/api/ucp.h>

namespace ucxl::nixl
{

constexpr unsigned message_id = 0x4e; // what message.h has
constexpr unsigned data_id    = 0x4f; // data_header, and bytes that UCX brings to their place

// Each call gets a whole message, or what names it if it comes by a rendezvous.
inline ucp_am_handler_param_t handler_of(unsigned id, ucp_am_recv_callback_t call, void* receiver)
{
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    handler.id    = id;
    handler.cb    = call;
    handler.arg   = receiver;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    return handler;
}

} // namespace ucxl::nixl

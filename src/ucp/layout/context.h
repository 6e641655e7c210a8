// Contexts that get windows before anybody has them; see ucp_layout_context_watch().
#pragma once

#include <ucp/api/ucp.h>

namespace ucxl
{

// As ucp_init_version(), which `next` is, for the code at `caller`, in the UCX that is attached.
ucs_status_t init_watched_context(decltype(&ucp_init_version) next, const void* caller, unsigned major, unsigned minor,
                                  const ucp_params_t* params, const ucp_config_t* config,
                                  ucp_context_h* context) noexcept;

} // namespace ucxl

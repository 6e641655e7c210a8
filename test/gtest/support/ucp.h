// UCP as tools, tests and benchmarks begin with it (src/tools/common), and what only tests ask of it.
#pragma once

#include "check.h"

#include "tools/common/ucp.h"

namespace ucxl::test
{

using tools::address_of;
using tools::connect;
using tools::context;
using tools::context_options;
using tools::finish;
using tools::init_any_ucx;
using tools::key_handle;
using tools::open_context;
using tools::open_worker;
using tools::pack_key;
using tools::unpack_key;

// Whether UCX puts into windows and gets from them by rendezvous. Then failures do not reach the initiator
// (docs/limits.md). UCX 1.22 has an option for that, which is off; the release candidate of 1.23 always does it.
inline bool moves_windows_by_rendezvous()
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    ucp_config_t* config = nullptr;
    check_ok(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
    const bool has_option = ucp_config_modify(config, "RMA_PPLN_ENABLE", "n") == UCS_OK;
    ucp_config_release(config);
    return minor >= 23 && !has_option;
}

inline constexpr const char* no_failures_by_rendezvous =
    "this UCX puts into windows and gets from them by rendezvous, which reports no failures, see docs/limits.md";

} // namespace ucxl::test

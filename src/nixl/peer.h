// Another agent: the endpoint to it, and its windows that are used here.
//
// Endpoints with UCP's error handling have no shared memory. So an agent on this host gets one without, and whether its
// process lives is seen by a descriptor of it.
//
// A window of another agent is made by that agent, on request, over regions that it has registered. It stays until it
// has not been used for long, so that a list of blocks that comes again is one number.
#pragma once

#include "known_lists.h"
#include "message.h"
#include "sys/process.h"
#include "ucx.h"

#include <ucp_layout.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace ucxl::nixl
{

// Of a window of another agent. What UCX moves by it keeps it.
using remote_key = std::shared_ptr<std::remove_pointer_t<ucp_rkey_h>>;

struct remote_window {
    shared_layout layout;
    std::vector<std::uint64_t> regions;
    std::uint64_t number  = 0;
    ucs_status_t status   = UCS_INPROGRESS; // until its owner has answered
    reach way             = reach::messages;
    std::uint64_t address = 0;
    remote_key key{};
};

struct peer {
    std::string name;
    std::uint64_t instance = 0;
    ucp_ep_h endpoint      = nullptr;
    ucs_status_t failure   = UCS_OK;                   // of the endpoint
    bool has_lost_endpoint = false;                    // UCX has said that it does not work any more
    std::optional<watched_process> process;            // if it is on this host
    bool has_shared_memory   = false;                  // windows in shared memory are reached by puts and gets
    bool is_copied_by_kernel = false;                  // the kernel copies between its memory and that of this process
    std::list<std::shared_ptr<remote_window>> windows; // the last used one first
};

} // namespace ucxl::nixl

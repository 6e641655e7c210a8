// Another agent: the endpoint to it, and its windows that are used here.
//
// Endpoints with UCP's error handling have no shared memory. So an agent on this host gets one without, and whether its
// process lives is seen by a descriptor of it.
//
// UCX joins the first endpoint from one agent to another with the first one back, the second with the second, and so
// on. Where there is none yet it makes one itself, which it destroys when a connection of it fails, for example by TCP
// when the other process ends. Without error handling, messages name the endpoint of their receiver by its address, and
// UCX follows the address also then. So each agent greets by a message that names none, and sends no other one before
// it knows that the other agent has made an endpoint, too: that one is only marked as failed, and stays.
//
// A window of another agent is made by that agent, on request, over regions that it has registered. It stays until it
// has not been used for long, so that a list of blocks that comes again is one number.
#pragma once

#include "known_lists.h"
#include "message.h"
#include "sys/process.h"
#include "ucx.h"

#include <ucp_layout.hpp>

#include <atomic>
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

// The end of a message that was sent; a message may outlive what it belongs to.
using message_status = std::shared_ptr<std::atomic<ucs_status_t>>;

struct waiting_message {
    message content;
    message_status status;
};

struct peer {
    std::string name;
    std::uint64_t instance = 0;
    ucp_ep_h endpoint      = nullptr;
    std::uint64_t ordinal  = 0;                        // of the endpoint, among those to that agent; the first is 1
    ucs_status_t failure   = UCS_OK;                   // of the endpoint
    bool has_lost_endpoint = false;                    // UCX has said that it does not work any more
    bool is_joined         = false;                    // with an endpoint that the other agent has made
    std::vector<waiting_message> waiting;              // for that
    std::optional<watched_process> process;            // if it is on this host
    bool has_shared_memory   = false;                  // windows in shared memory are reached by puts and gets
    bool is_copied_by_kernel = false;                  // the kernel copies between its memory and that of this process
    std::list<std::shared_ptr<remote_window>> windows; // the last used one first
};

} // namespace ucxl::nixl

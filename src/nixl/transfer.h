// One transfer: bytes of a list of blocks here, to or from a list of blocks of an agent, the own one or another one.
//
// It is prepared once and posted any number of times. A post only queues it; what it needs of UCX is done by whoever
// makes the worker progress. All but the status belongs to the lock of the worker.
//
//     idle -> waiting (for the window of the peer) -> moving -> flushing -> notifying -> idle
#pragma once

#include "known_lists.h"
#include "local_buffer.h"
#include "peer.h"
#include "region.h"

#include <ucp_layout.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ucxl::nixl
{

enum class direction { read, write };

struct transfer;
class worker;

// Memory of this process that a list of blocks describes.
struct local_blocks {
    shared_layout layout;
    std::vector<std::shared_ptr<region>> regions;
    std::vector<void*> bases;
};

// Bytes of a transfer that UCX moves, or that the other agent takes or brings.
struct piece {
    std::uint64_t number   = 0; // while an answer is awaited
    std::uint64_t answerer = 0; // the instance of the agent that may give it
    std::uint64_t offset   = 0; // packed bytes of the transfer before it
    std::uint64_t length   = 0;
    const transfer* target = nullptr; // fetched: where the bytes go
    std::string header{};             // sent with the bytes
    remote_key key{};                 // of puts and gets
    ucs_status_ptr_t call = nullptr;  // of UCX, that has to be asked
    bool is_in_ucx        = false;    // UCX tells when it has ended
    ucs_status_t failure  = UCS_OK;

    bool has_ended() const { return call == nullptr && !is_in_ucx && number == 0; }
    void note(ucs_status_t status) { failure = failure == UCS_OK ? status : failure; }
};

struct transfer {
    enum class stage { idle, waiting, moving, flushing, notifying };

    worker* owner        = nullptr; // null: it has ended
    direction way        = direction::write;
    std::uint64_t length = 0;
    local_blocks local;
    local_buffer buffer; // of the local bytes, with a target

    std::shared_ptr<peer> target;          // null: the agent itself
    std::shared_ptr<remote_window> remote; // with a target
    std::optional<local_blocks> own;       // without: the other list
    std::optional<ucx_layout::plan> local_plan, own_plan;

    std::atomic<ucs_status_t> status{UCS_OK}; // of the last post
    std::optional<std::string> notice;        // to send when all bytes have arrived

    stage at                             = stage::idle;
    std::uint64_t started                = 0;
    ucs_status_t failure                 = UCS_OK;
    std::uint64_t silent_failures_before = 0;
    std::vector<std::shared_ptr<piece>> running;
    std::vector<std::shared_ptr<piece>> unfinished; // UCX will never end them
    message_status notice_sent;
};

// Ends the transfer, if it is running: what UCX has begun is waited for, and if that does not end in time, the worker
// keeps the transfer. The worker may have ended before.
struct release_transfer {
    void operator()(transfer* xfer) const;
};

using transfer_ptr = std::unique_ptr<transfer, release_transfer>;

} // namespace ucxl::nixl

// Batches of transfers between the two peers. Both sides prepare a batch, start all its transfers, wait for all of
// them, and then check every byte of every memory.
#pragma once

#include "side.h"

#include <array>

namespace ucxl::two_process
{

enum class operation { tag, stream, am, put, get };

const char* name_of(operation operation);

// Bytes go from sides[0] to sides[1]. Both peers hold the same plan.
struct transfer_plan {
    operation kind       = operation::tag;
    int from             = 0; // the role that owns sides[0]; the other one owns sides[1]
    std::uint64_t length = 0; // packed bytes
    std::uint64_t seed   = 0; // of the message
    std::array<side_plan, 2> sides;
    unsigned am_flags         = 0;     // UCP_AM_SEND_FLAG_EAGER or _RNDV, or 0 to let UCP choose
    std::size_t header_length = 0;     // of an active message
    bool rebind               = false; // windows show other memory after they were mapped and their keys packed

    int owner(int side) const { return side == 0 ? from : 1 - from; }
    // The side that calls UCP for put and get; the other side only gives its key.
    int active_side() const { return kind == operation::get ? 1 : 0; }
    bool is_remote_access() const { return kind == operation::put || kind == operation::get; }
};

struct batch_plan {
    std::vector<transfer_plan> transfers;
    bool unexpected = false; // messages are sent before they are received
};

// UCX_PROTO_ENABLE, which is on by default.
bool protocols_know_memory_types();

// What a random batch may contain.
struct batch_options {
    std::vector<operation> operations;
    std::vector<std::uint64_t> lengths;
    unsigned max_transfers = 4;
    bool allow_datatypes   = true;
    bool allow_rebinding   = true;
    // UCP's first protocol implementation emulates put and get in software as if all memory were host memory (rma_sw.c
    // of 1.18: memcpy, and UCS_MEMORY_TYPE_HOST in the headers). Without a transport of ours for remote access, windows
    // crash there.
    bool windows_in_remote_access = protocols_know_memory_types();
};

// Both peers draw the same batch, from equal sequences.
batch_plan random_batch(test::random& random, const batch_options& options);

void run_batch(session& session, const batch_plan& plan);

std::string to_string(const transfer_plan& plan);

} // namespace ucxl::two_process

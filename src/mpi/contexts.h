// The contexts that MPI's UCX makes while MPI starts: they get what windows need if messages may go by windows, and
// promise them to peers only if they have them.
//
// Both peers of a window need this library, and lay_copy in their UCX. Processes with windows write addresses of UCX's
// second format, others of the first one, so each process knows what its peers have before a message is sent.
#pragma once

#include <optional>

#include <ucp/api/ucp.h>
#include <ucp_layout.h>

namespace ucxl::mpi
{

// By MPI_Init, or by a session.
enum class way_of_start : unsigned char { world, session };

class contexts
{
public:
    // Before MPI starts, and after it has made its contexts. Contexts that are made between these are MPI's. If this
    // library does not take part, they are as without it.
    static void begin(way_of_start way, bool takes_part);
    static void end();

    // The one by which MPI moves messages: that of the last worker. Null if MPI has made none: with sessions it does so
    // for the first communicator.
    static ucp_context_h of_messages();
    // Who would carry windows of messages; none if they have no windows.
    static std::optional<ucp_layout_carrier_t> carrier();
    // Whether they were made for layouts in the place of Open MPI's engine alone: with windows only where a card may
    // carry them.
    static bool need_no_windows();
    // Whether a process to which MPI has connected has no windows, although this one has them.
    static bool has_peer_without_windows();
    // Whether the context by which MPI moves messages tells its peers that it has windows.
    static bool tells_peers();
    // The processes to which MPI connected while it started.
    static unsigned num_peers();
    // Before each message by windows: whether there may be one. After the first one MPI gets no endpoint to a process
    // without windows any more.
    static bool may_use_windows() noexcept;
    // Before MPI ends while messages by windows still run: its UCX forgets where it has registered windows. What uses
    // such a registration keeps it. A UCX with assertions would end the process if it found one in use at its own end.
    static void retire_windows() noexcept;
};

} // namespace ucxl::mpi

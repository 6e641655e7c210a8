// Tells UCX what memory the buffers of MPI's messages are, where it is not a window: UCX would look each one up, in its
// cache of memory types, as soon as windows have types of their own. That takes two times 25 ns for a short message.
//
// Only in a process without other types of memory, such as that of a GPU, and without cards, whose memory has the
// addresses of windows.
#pragma once

#include <ucp/api/ucp.h>

namespace ucxl::mpi
{

class host_memory
{
public:
    // After MPI has started, with the context of its messages. Again in the next session.
    static void start(ucp_context_h context);
};

} // namespace ucxl::mpi

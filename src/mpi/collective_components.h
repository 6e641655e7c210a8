// How MPI does collective calls.
#pragma once

namespace ucxl::mpi
{

// Whether MPI only sends and receives long blocks of broadcasts, of calls among neighbours, and of calls with a block
// for each process, but for what a process sends to itself. After MPI has started.
bool collectives_only_send();

} // namespace ucxl::mpi

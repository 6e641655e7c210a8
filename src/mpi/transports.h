// What MPI's UCX needs for windows, told by the environment before MPI starts. What users chose stays.
#pragma once

namespace ucxl::mpi
{

// Windows need one transport of this project in MPI's UCX. A list of transports that leaves it out gets it.
void complete_transports();

// Both peers of a window need this library. Its processes write addresses of UCX's second format, from which others
// know that they have it, and refuse a peer that does not.
void require_library_of_peers();

} // namespace ucxl::mpi

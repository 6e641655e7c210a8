// What MPI's UCX needs for windows, told by the environment before MPI starts. What users chose stays.
#pragma once

namespace ucxl::mpi
{

// Windows need one transport of this project in MPI's UCX. A list of transports that leaves it out gets it.
void complete_transports();

// UCX cuts messages within a host into pieces. One of its 8 KB is a column of 1024 numbers, so nothing is gained from
// the next columns in the same lines of the cache. The pieces become longer. Their length is no power of 2, because
// they begin at multiples of it and would share few sets of the cache. Processes tell each other how long theirs are;
// one without this library does not, and is no peer then.
void lengthen_fragments();

} // namespace ucxl::mpi

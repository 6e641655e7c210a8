// What Open MPI needs to use UCX on every host, told by the environment before MPI starts. What users chose stays.
#pragma once

namespace ucxl::mpi
{

// If the user asked Open MPI for UCX, as `mpirun --mca pml ucx` does, it gets what it would lack:
//
// * It uses UCX only where UCX has one of the transports in the parameter pml_ucx_tls, and all of these are for cards
//   and GPUs. It ends on other hosts. Any transport will do.
// * The parameter file of Debian excludes UCX from one-sided operations, and with UCX for messages nothing else can do
//   them: no window of MPI can be made. None is excluded.
//
// Whoever did not ask for UCX gets what Open MPI chooses.
void let_openmpi_use_ucx();

} // namespace ucxl::mpi

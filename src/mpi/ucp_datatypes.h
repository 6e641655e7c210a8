// Open MPI's messages by layouts without windows: UCX packs and unpacks a derived datatype piece by piece through
// functions that it gets from Open MPI. This library gives it others in their place, which choose for each message:
// those of a layout if the datatype is known, else Open MPI's. Nothing is made for a datatype that is not known.
//
// So the calls of a program go to Open MPI as they are, and UCX sends pieces as it does without this library.
#pragma once

namespace ucxl::mpi
{

class ucp_datatypes
{
public:
    // Whether start() tries at all, which is known before MPI starts.
    static bool may_be_used();
    // Finds out, by a message of this process to itself, whether the MPI below works like that.
    static void start();
    static void stop();
    // From now on the messages of all datatypes that have a known_type::layout_context().
    static bool are_used();
};

} // namespace ucxl::mpi

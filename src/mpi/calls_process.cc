// The start and the end of MPI, and the datatypes that programs commit in between.
#include "call.h"
#include "contexts.h"
#include "library.h"
#include "settings.h"
#include "target_memory.h"

#include <mutex>

namespace
{

using namespace ucxl::mpi;

// A program may start MPI as a whole and, also instead of that, by sessions. The library is there from the first of
// these until the last one has ended.
std::mutex lock;
unsigned num_users = 0;

template <typename Start>
int start_first(way_of_start way, Start&& begin)
{
    const bool takes_part = library::prepare();
    int result            = MPI_SUCCESS;
    contexts::begin(way, takes_part);
    {
        const hidden_options hidden;
        result = begin();
    }
    if (takes_part && result == MPI_SUCCESS) {
        library::start();
    }
    if (result != MPI_SUCCESS || library::has_world()) {
        contexts::end();
    }
    return result;
}

template <typename Start>
int start_mpi(way_of_start way, Start&& begin)
{
    const std::lock_guard guard(lock);
    const bool is_first = num_users == 0;
    const int result    = is_first ? start_first(way, begin) : begin();
    if (result == MPI_SUCCESS) {
        ++num_users;
        // Also if the library has found a reason to stay out: the other processes may not have.
        if (way == way_of_start::world) {
            target_memory::start(is_first);
        }
    }
    return result;
}

template <typename End>
int end_mpi(End&& end)
{
    {
        const std::lock_guard guard(lock);
        if (num_users > 0 && --num_users == 0) {
            library::stop();
            contexts::end();
        }
    }
    return end();
}

// Programs and libraries may end their requests and windows in what MPI calls when it deletes the attributes of
// MPI_COMM_SELF, first of all. The oldest of these is the library's own, and stops it.
int end_world()
{
    bool is_last = false;
    {
        const std::lock_guard guard(lock);
        is_last = num_users > 0 && --num_users == 0;
        if (is_last && !library::stops_with_mpi()) {
            library::stop();
        }
    }
    const int result = next_MPI_Finalize();
    if (is_last) {
        contexts::end();
    }
    return result;
}

} // namespace

UCXL_MPI_CALL own_MPI_Init(int* argc, char*** argv)
{
    return start_mpi(way_of_start::world, [&] { return next_MPI_Init(argc, argv); });
}

UCXL_MPI_CALL own_MPI_Init_thread(int* argc, char*** argv, int required, int* provided)
{
    return start_mpi(way_of_start::world, [&] { return next_MPI_Init_thread(argc, argv, required, provided); });
}

UCXL_MPI_CALL own_MPI_Finalize()
{
    return end_world();
}

UCXL_MPI_CALL own_MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session)
{
    return start_mpi(way_of_start::session, [&] { return next_MPI_Session_init(info, handler, session); });
}

UCXL_MPI_CALL own_MPI_Session_finalize(MPI_Session* session)
{
    return end_mpi([&] { return next_MPI_Session_finalize(session); });
}

UCXL_MPI_CALL own_MPI_Type_commit(MPI_Datatype* type)
{
    const int result = next_MPI_Type_commit(type);
    if (result == MPI_SUCCESS) {
        note_commit(*type);
    }
    return result;
}

// The copy of a committed datatype is committed.
UCXL_MPI_CALL own_MPI_Type_dup(MPI_Datatype type, MPI_Datatype* copy)
{
    const int result = next_MPI_Type_dup(type, copy);
    if (result == MPI_SUCCESS) {
        library::note_copy(type, *copy);
    }
    return result;
}

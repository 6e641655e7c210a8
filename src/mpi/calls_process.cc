// The start and the end of MPI, and the datatypes that programs commit and free in between.
#include "call.h"
#include "contexts.h"
#include "library.h"
#include "requests.h"
#include "settings.h"
#include "target_memory.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace
{

using namespace ucxl::mpi;

// A program may start MPI as a whole, the world, and, also instead of that, by sessions. The library is there from the
// first of these until the last one has ended. MPI is not called under the lock: it has one of its own, which it holds
// while it calls leave_with_mpi().
struct users_of_mpi {
    std::mutex lock;
    std::condition_variable has_started;
    std::thread::id starter{}; // the thread that starts MPI; none otherwise
    bool has_world        = false;
    bool is_attached      = false; // MPI says when the world ends
    unsigned num_sessions = 0;

    bool any() const { return has_world || num_sessions > 0; }
};

// Not destroyed at exit: other threads may still be in MPI.
users_of_mpi& users()
{
    static users_of_mpi& only = *new users_of_mpi;
    return only;
}

// Under the lock.
void stop_after_last()
{
    if (!users().any()) {
        library::stop();
        contexts::end();
    }
}

void leave_world()
{
    if (users().has_world) {
        users().has_world = users().is_attached = false;
        target_memory::leave_world();
        stop_after_last();
    }
}

// MPI completes what the program has freed when it ends itself, which is after the library has stopped. Not under the
// lock.
void hand_over_freed_before(bool (*is_last)())
{
    std::unique_lock guard(users().lock);
    if (is_last()) {
        guard.unlock();
        requests::hand_over_freed();
    }
}

bool has_world_only()
{
    return users().has_world && users().num_sessions == 0;
}

bool has_one_session_only()
{
    return !users().has_world && users().num_sessions == 1;
}

// MPI deletes what is attached to MPI_COMM_SELF as soon as it begins to end; for MPICH that is when the last session
// has ended, too. A tool may hide MPI_Finalize.
int leave_with_mpi(MPI_Comm /*comm*/, int /*keyval*/, void* /*value*/, void* /*extra*/)
{
    hand_over_freed_before(has_world_only);
    const std::lock_guard guard(users().lock);
    leave_world();
    return MPI_SUCCESS;
}

bool attach_end_of_world()
{
    int keyval = MPI_KEYVAL_INVALID;
    if (PMPI_Comm_create_keyval(copy_none<MPI_Comm>, leave_with_mpi, &keyval, nullptr) != MPI_SUCCESS) {
        return false;
    }
    const bool is_attached = PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, nullptr) == MPI_SUCCESS;
    PMPI_Comm_free_keyval(&keyval); // it lives as long as what is attached
    return is_attached;
}

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

// One thread at a time.
class start_of_mpi
{
public:
    start_of_mpi()
    {
        std::unique_lock guard(users().lock);
        users().has_started.wait(guard, [] { return users().starter == std::thread::id(); });
        users().starter = std::this_thread::get_id();
        _is_first       = !users().any();
    }
    start_of_mpi(const start_of_mpi&)            = delete;
    start_of_mpi& operator=(const start_of_mpi&) = delete;
    ~start_of_mpi()
    {
        const std::lock_guard guard(users().lock);
        users().starter = {};
        users().has_started.notify_all();
    }

    // A tool starts MPI by another call than the program.
    static bool is_of_this_thread()
    {
        const std::lock_guard guard(users().lock);
        return users().starter == std::this_thread::get_id();
    }

    bool is_first() const { return _is_first; }

private:
    bool _is_first;
};

void note_session()
{
    const std::lock_guard guard(users().lock);
    ++users().num_sessions;
}

void note_world(bool is_first)
{
    const bool is_attached = library::is_active() && attach_end_of_world();
    {
        const std::lock_guard guard(users().lock);
        users().has_world   = true;
        users().is_attached = is_attached;
    }
    // Also if the library has found a reason to stay out: the other processes may not have.
    target_memory::start(is_first);
}

template <typename Start>
int start_mpi(way_of_start way, Start&& begin)
{
    if (start_of_mpi::is_of_this_thread()) {
        const int result = begin();
        if (result == MPI_SUCCESS && way == way_of_start::session) {
            note_session();
        }
        return result;
    }
    const start_of_mpi start;
    const int result = start.is_first() ? start_first(way, begin) : begin();
    if (result == MPI_SUCCESS && way == way_of_start::session) {
        note_session();
    } else if (result == MPI_SUCCESS) {
        note_world(start.is_first());
    }
    return result;
}

// Programs and libraries may end their requests and windows in what MPI calls when it deletes the attributes of
// MPI_COMM_SELF, first of all. The oldest of these is the library's own, and leaves the world.
int end_world()
{
    hand_over_freed_before([] { return !users().is_attached && has_world_only(); });
    {
        const std::lock_guard guard(users().lock);
        if (!users().is_attached) {
            leave_world();
        }
    }
    const int result = next_MPI_Finalize();
    requests::release_kept();
    return result;
}

int end_session(MPI_Session* session)
{
    bool is_counted = session != nullptr && *session != MPI_SESSION_NULL;
    if (is_counted) {
        hand_over_freed_before(has_one_session_only);
    }
    {
        const std::lock_guard guard(users().lock);
        is_counted = is_counted && users().num_sessions > 0;
        if (is_counted) {
            --users().num_sessions;
            stop_after_last();
        }
    }
    const int result = next_MPI_Session_finalize(session);
    if (is_counted && result != MPI_SUCCESS) {
        note_session(); // it is still open
    } else {
        requests::release_kept();
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
    return end_session(session);
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

// Before MPI gives the handle to another datatype, which may not be committed.
UCXL_MPI_CALL own_MPI_Type_free(MPI_Datatype* type)
{
    if (type != nullptr) {
        note_free(*type);
    }
    return next_MPI_Type_free(type);
}

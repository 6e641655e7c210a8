// The calls that may end requests, which then give back their windows.
#include "call.h"
#include "operations.h"
#include "requests.h"

#include <algorithm>
#include <memory>
#include <new>

using ucxl::mpi::end_results;
using ucxl::mpi::ending_requests;
using ucxl::mpi::operations;
using ucxl::mpi::requests;

namespace
{

// `results` say where the call writes.
template <typename Next, typename... Rest>
[[gnu::noinline]] int end_held(int count, MPI_Request* array, end_results results, Next* next, Rest... arguments)
{
    ending_requests ending(count, array);
    results.of_call = next(arguments...);
    ending.settle(results);
    return results.of_call;
}

// Ends one request at most. `arguments` are those of `next`.
template <typename Next, typename... Rest>
UCXL_MPI_FAST int end_one(int count, MPI_Request* array, end_results results, Next* next, Rest... arguments)
{
    return requests::any() ? end_held(count, array, results, next, arguments...) : next(arguments...);
}

// Whether a call that fails like this says which requests have failed.
bool names_requests(int result)
{
    return result == MPI_SUCCESS || end_results::error_class(result) == MPI_ERR_IN_STATUS;
}

// What a call that names all requests, or some of them, got to write to.
struct written {
    MPI_Status* statuses;
    const int* number  = nullptr;
    const int* indices = nullptr;
    const int* flag    = nullptr;
};

template <typename Call>
[[gnu::noinline]] int end_several_held(int count, MPI_Request* array, written into, Call call)
{
    ending_requests ending(count, array);
    // If one fails the others have to be known, also where the program does not ask.
    std::unique_ptr<MPI_Status[]> own;
    if (into.statuses == MPI_STATUSES_IGNORE && ending.may_unpack()) {
        own.reset(new (std::nothrow) MPI_Status[static_cast<std::size_t>(count)]);
        into.statuses = own != nullptr ? own.get() : into.statuses;
    }
    const int result = call(into.statuses);
    // Of arguments that are wrong MPI writes nothing.
    const int number = into.number == nullptr ? count : names_requests(result) ? std::max(*into.number, 0) : 0;
    ending.settle({.of_call  = result,
                   .statuses = into.statuses == MPI_STATUSES_IGNORE ? nullptr : into.statuses,
                   .indices  = into.indices,
                   .number   = number,
                   .flag     = into.flag});
    return result;
}

template <typename Call>
UCXL_MPI_FAST int end_several(int count, MPI_Request* array, written into, Call call)
{
    return requests::any() ? end_several_held(count, array, into, call) : call(into.statuses);
}

int wait_for_all(int count, MPI_Request array[], MPI_Status statuses[])
{
    return end_several(count, array, {statuses}, [=](MPI_Status* all) { return next_MPI_Waitall(count, array, all); });
}

// A thread that asks about some of the requests may not get on to do what others of them wait for. So this waits for
// the former first, each by itself, and puts together what MPI would have said of all.
[[gnu::noinline]] int wait_for_asked_first(int count, MPI_Request array[], MPI_Status statuses[])
{
    struct waited {
        int index;
        MPI_Status status;
    };
    const auto number_of_asked = std::count_if(array, array + count, requests::may_be_asked);
    const std::unique_ptr<waited[]> all(new (std::nothrow) waited[static_cast<std::size_t>(number_of_asked)]);
    if (number_of_asked == 0 || all == nullptr) {
        return wait_for_all(count, array, statuses);
    }
    waited* end     = all.get();
    bool has_failed = false;
    for (int i = 0; i < count && end != all.get() + number_of_asked; ++i) {
        if (requests::may_be_asked(array[i])) {
            ending_requests ending(1, &array[i]);
            const int own = PMPI_Wait(&array[i], &end->status);
            ending.settle({.of_call = own});
            end->index            = i;
            end->status.MPI_ERROR = own;
            has_failed            = has_failed || own != MPI_SUCCESS;
            ++end;
        }
    }
    const int result = wait_for_all(count, array, statuses);
    if (statuses != MPI_STATUSES_IGNORE && statuses != nullptr) {
        // Without an error MPI leaves that field alone.
        for (int i = 0; i < count && has_failed && result == MPI_SUCCESS; ++i) {
            statuses[i].MPI_ERROR = MPI_SUCCESS;
        }
        std::for_each(all.get(), end, [&](waited& each) {
            MPI_Status& status = statuses[each.index];
            if (!has_failed && result == MPI_SUCCESS) {
                each.status.MPI_ERROR = status.MPI_ERROR;
            }
            status = each.status;
        });
    }
    return result == MPI_SUCCESS && has_failed ? MPI_ERR_IN_STATUS : result;
}

} // namespace

UCXL_MPI_CALL own_MPI_Wait(MPI_Request* request, MPI_Status* status)
{
    return end_one(1, request, {}, next_MPI_Wait, request, status);
}

UCXL_MPI_CALL own_MPI_Waitall(int count, MPI_Request array[], MPI_Status statuses[])
{
    return operations::any() && count > 1 && array != nullptr ? wait_for_asked_first(count, array, statuses)
                                                              : wait_for_all(count, array, statuses);
}

UCXL_MPI_CALL own_MPI_Waitany(int count, MPI_Request array[], int* index, MPI_Status* status)
{
    return end_one(count, array, {.indices = index}, next_MPI_Waitany, count, array, index, status);
}

UCXL_MPI_CALL own_MPI_Waitsome(int count, MPI_Request array[], int* num_ended, int indices[], MPI_Status statuses[])
{
    return end_several(count, array, {statuses, num_ended, indices},
                       [=](MPI_Status* all) { return next_MPI_Waitsome(count, array, num_ended, indices, all); });
}

UCXL_MPI_CALL own_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status)
{
    return end_one(1, request, {.flag = flag}, next_MPI_Test, request, flag, status);
}

UCXL_MPI_CALL own_MPI_Testall(int count, MPI_Request array[], int* flag, MPI_Status statuses[])
{
    return end_several(count, array, {.statuses = statuses, .flag = flag},
                       [=](MPI_Status* all) { return next_MPI_Testall(count, array, flag, all); });
}

UCXL_MPI_CALL own_MPI_Testany(int count, MPI_Request array[], int* index, int* flag, MPI_Status* status)
{
    return end_one(count, array, {.indices = index, .flag = flag}, next_MPI_Testany, count, array, index, flag, status);
}

UCXL_MPI_CALL own_MPI_Testsome(int count, MPI_Request array[], int* num_ended, int indices[], MPI_Status statuses[])
{
    return end_several(count, array, {statuses, num_ended, indices},
                       [=](MPI_Status* all) { return next_MPI_Testsome(count, array, num_ended, indices, all); });
}

// The program may use what arrived, though the request stays.
UCXL_MPI_CALL own_MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status)
{
    const int result = next_MPI_Request_get_status(request, flag, status);
    if (result == MPI_SUCCESS && *flag != 0) {
        requests::note_end(request);
    }
    return result;
}

#if UCXL_STATUS_OF_MANY
UCXL_MPI_CALL own_MPI_Request_get_status_all(int count, UCXL_PARAMETER(1, Request_get_status_all) array, int* flag,
                                             MPI_Status statuses[])
{
    const int result = next_MPI_Request_get_status_all(count, array, flag, statuses);
    for (int i = 0; result == MPI_SUCCESS && *flag != 0 && i < count; ++i) {
        requests::note_end(array[i]);
    }
    return result;
}

UCXL_MPI_CALL own_MPI_Request_get_status_any(int count, UCXL_PARAMETER(1, Request_get_status_any) array, int* index,
                                             int* flag, MPI_Status* status)
{
    const int result = next_MPI_Request_get_status_any(count, array, index, flag, status);
    if (result == MPI_SUCCESS && *flag != 0 && *index != MPI_UNDEFINED) {
        requests::note_end(array[*index]);
    }
    return result;
}

UCXL_MPI_CALL own_MPI_Request_get_status_some(int count, UCXL_PARAMETER(1, Request_get_status_some) array,
                                              int* num_ended, int indices[], MPI_Status statuses[])
{
    const int result = next_MPI_Request_get_status_some(count, array, num_ended, indices, statuses);
    for (int i = 0; result == MPI_SUCCESS && *num_ended != MPI_UNDEFINED && i < *num_ended; ++i) {
        requests::note_end(array[indices[i]]);
    }
    return result;
}
#endif

UCXL_MPI_CALL own_MPI_Start(MPI_Request* request)
{
    requests::begin(1, request);
    const int result = next_MPI_Start(request);
    if (result != MPI_SUCCESS) {
        requests::cancel_begin(1, request);
    }
    return result;
}

UCXL_MPI_CALL own_MPI_Startall(int count, MPI_Request array[])
{
    requests::begin(count, array);
    const int result = next_MPI_Startall(count, array);
    if (result != MPI_SUCCESS) {
        requests::cancel_begin(count, array);
    }
    return result;
}

UCXL_MPI_CALL own_MPI_Request_free(MPI_Request* request)
{
    return (requests::any() || requests::has_freed()) && request != nullptr && *request != MPI_REQUEST_NULL
               ? requests::free(request, next_MPI_Request_free)
               : next_MPI_Request_free(request);
}

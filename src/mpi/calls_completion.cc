// The calls that may end requests, which then give back their windows.
#include "call.h"
#include "requests.h"

using ucxl::mpi::ending_requests;
using ucxl::mpi::requests;

namespace
{

template <typename Next, typename... Rest>
[[gnu::noinline]] int end_held(int count, MPI_Request* array, Next* next, Rest... arguments)
{
    ending_requests ending(count, array);
    const int result = next(arguments...);
    ending.settle();
    return result;
}

// `arguments` are those of `next`.
template <typename Next, typename... Rest>
UCXL_MPI_FAST int end_requests(int count, MPI_Request* array, Next* next, Rest... arguments)
{
    return requests::any() ? end_held(count, array, next, arguments...) : next(arguments...);
}

} // namespace

UCXL_MPI_CALL own_MPI_Wait(MPI_Request* request, MPI_Status* status)
{
    return end_requests(1, request, next_MPI_Wait, request, status);
}

UCXL_MPI_CALL own_MPI_Waitall(int count, MPI_Request array[], MPI_Status statuses[])
{
    return end_requests(count, array, next_MPI_Waitall, count, array, statuses);
}

UCXL_MPI_CALL own_MPI_Waitany(int count, MPI_Request array[], int* index, MPI_Status* status)
{
    return end_requests(count, array, next_MPI_Waitany, count, array, index, status);
}

UCXL_MPI_CALL own_MPI_Waitsome(int count, MPI_Request array[], int* num_ended, int indices[], MPI_Status statuses[])
{
    return end_requests(count, array, next_MPI_Waitsome, count, array, num_ended, indices, statuses);
}

UCXL_MPI_CALL own_MPI_Test(MPI_Request* request, int* flag, MPI_Status* status)
{
    return end_requests(1, request, next_MPI_Test, request, flag, status);
}

UCXL_MPI_CALL own_MPI_Testall(int count, MPI_Request array[], int* flag, MPI_Status statuses[])
{
    return end_requests(count, array, next_MPI_Testall, count, array, flag, statuses);
}

UCXL_MPI_CALL own_MPI_Testany(int count, MPI_Request array[], int* index, int* flag, MPI_Status* status)
{
    return end_requests(count, array, next_MPI_Testany, count, array, index, flag, status);
}

UCXL_MPI_CALL own_MPI_Testsome(int count, MPI_Request array[], int* num_ended, int indices[], MPI_Status statuses[])
{
    return end_requests(count, array, next_MPI_Testsome, count, array, num_ended, indices, statuses);
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
    return requests::any() && request != nullptr && *request != MPI_REQUEST_NULL
               ? requests::free(request, next_MPI_Request_free)
               : next_MPI_Request_free(request);
}

// A program that starts MPI by a session: a message of a derived datatype on a communicator of all processes, twice,
// with a session in between that ends earlier. It calls MPI_Init then, and puts into windows of both communicators, if
// it is told to. Or it calls MPI_Init first, and MPI_Finalize while a message of the session is on its way.
//
// usage: mpirun -n 2 mpi_session_calls_MPI [init | outlive]
#include <cstdio>
#include <cstring>
#include <mpi.h>
#include <vector>

namespace
{

// What a process sends, number by number.
int number_of(int rank, int index)
{
    return (rank + 1) * 100000 + index;
}

std::vector<int> numbers_of(int rank, int count)
{
    std::vector<int> all;
    for (int i = 0; i < count; ++i) {
        all.push_back(number_of(rank, i));
    }
    return all;
}

MPI_Comm all_processes(MPI_Session session)
{
    MPI_Group group;
    MPI_Comm comm;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "ucx-layout", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    return comm;
}

// Ends in between what it is told to end.
long exchange(MPI_Comm comm, int (*end)() = nullptr)
{
    constexpr int number = 1000, stride = 3;
    int rank = 0, size = 0;
    long wrong = 0;
    MPI_Datatype column;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_vector(number, 1, stride, MPI_INT, &column);
    MPI_Type_commit(&column);
    const std::vector<int> sent = numbers_of(rank, number * stride);
    std::vector<int> received(number * stride, -1);
    const int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    if (end == nullptr) {
        MPI_Sendrecv(sent.data(), 1, column, next, 0, received.data(), 1, column, previous, 0, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Request request;
        MPI_Irecv(received.data(), 1, column, previous, 0, comm, &request);
        end();
        MPI_Send(sent.data(), 1, column, next, 0, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < number * stride; ++i) {
        wrong += received[static_cast<std::size_t>(i)] != (i % stride == 0 ? number_of(previous, i) : -1);
    }
    MPI_Type_free(&column);
    return wrong;
}

long put(MPI_Comm comm)
{
    constexpr int number = 1000, stride = 3;
    int rank = 0, size = 0, *memory = nullptr;
    long wrong = 0;
    MPI_Datatype column;
    MPI_Win win;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_vector(number, 1, stride, MPI_INT, &column);
    MPI_Type_commit(&column);
    const std::vector<int> sent = numbers_of(rank, number * stride);
    MPI_Win_allocate(number * sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &win);
    MPI_Win_fence(0, win);
    MPI_Put(sent.data(), 1, column, (rank + 1) % size, 0, number, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < number; ++i) {
        wrong += memory[i] != number_of((rank + size - 1) % size, i * stride);
    }
    MPI_Win_free(&win);
    MPI_Type_free(&column);
    return wrong;
}

} // namespace

int main(int argc, char** argv)
{
    const char* const order = argc > 1 ? argv[1] : "";
    const bool outlives     = std::strcmp(order, "outlive") == 0;
    if (outlives) {
        MPI_Init(&argc, &argv);
    }
    MPI_Session first, second;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &first);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
    MPI_Session_finalize(&second);
    MPI_Comm comm    = all_processes(first);
    long wrong       = exchange(comm) + exchange(comm);
    const bool inits = std::strcmp(order, "init") == 0;
    if (inits) {
        MPI_Init(&argc, &argv);
        wrong += put(MPI_COMM_WORLD) + put(comm);
    }
    if (outlives) {
        wrong += exchange(comm, MPI_Finalize) + exchange(comm);
    }
    std::printf("%ld wrong\n", wrong);
    MPI_Comm_free(&comm);
    if (inits) {
        MPI_Finalize();
    }
    MPI_Session_finalize(&first);
    return wrong == 0 ? 0 : 1;
}

// Calls of an MPI program or of a plugin: messages and a collective call of strided datatypes between two processes, of
// which every number is compared. Prints "N wrong".
//
// Compiled as a program, and as a library whose function exchange_calls() somebody calls who knows nothing of MPI.
#include <cstdio>
#include <mpi.h>
#include <vector>

namespace
{

constexpr int blocks = 1000, length = 8, stride = 16;

double value(int rank, int index)
{
    return 100000.0 * (rank + 1) + index;
}

// Numbers of the datatype come from `rank`, the others are as they were.
long count_wrong(const std::vector<double>& received, int rank)
{
    long wrong = 0;
    for (int i = 0; i < blocks * stride; ++i) {
        wrong += received[i] != (i % stride < length ? value(rank, i) : -1) ? 1 : 0;
    }
    return wrong;
}

} // namespace

extern "C" int exchange_calls(int* argc, char*** argv)
{
    MPI_Init(argc, argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int other = 1 - rank;
    MPI_Datatype columns;
    MPI_Type_vector(blocks, length, stride, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    std::vector<double> sent(blocks * stride), received(blocks * stride);
    for (int i = 0; i < blocks * stride; ++i) {
        sent[i] = value(rank, i);
    }
    long wrong = 0;
    for (int round = 0; round < 4; ++round) {
        received.assign(received.size(), -1);
        MPI_Request requests[2];
        MPI_Irecv(received.data(), 1, columns, other, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(sent.data(), 1, columns, other, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        wrong += count_wrong(received, other);
        received.assign(received.size(), -1);
        const int counts[] = {other == 0 ? 1 : 0, other == 1 ? 1 : 0}, places[] = {0, 0};
        const MPI_Datatype types[] = {other == 0 ? columns : MPI_DOUBLE, other == 1 ? columns : MPI_DOUBLE};
        MPI_Request exchange;
        MPI_Ialltoallw(sent.data(), counts, places, types, received.data(), counts, places, types, MPI_COMM_WORLD,
                       &exchange);
        MPI_Wait(&exchange, MPI_STATUS_IGNORE);
        wrong += count_wrong(received, other);
    }
    MPI_Type_free(&columns);
    MPI_Finalize();
    std::printf("%ld wrong\n", wrong);
    return wrong == 0 ? 0 : 1;
}

#ifndef AS_PLUGIN
int main(int argc, char** argv)
{
    return exchange_calls(&argc, &argv);
}
#endif

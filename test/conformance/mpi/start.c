/* Starts MPI, sends one message, ends MPI: the part of a short program's time that is not the program's. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv)
{
    int rank  = 0;
    int size  = 0;
    int token = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv_replace(&token, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    printf("started %d\n", token);
    MPI_Finalize();
    return 0;
}

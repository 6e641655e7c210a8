// An MPI program as users write them: rank 0 sends every second block of 64 bytes of its matrix, and rank 1 checks what
// arrives. It knows nothing of the libraries, which the test preloads.
#include <mpi.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv)
{
    constexpr int rows = 16384, pitch = 128, column = 64, rounds = 50;
    int rank = 0, num_wrong = 0;
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_vector(rows, column, pitch, MPI_CHAR, &type);
    MPI_Type_commit(&type);
    for (int round = 0; round < rounds; ++round) {
        // Each time from other memory, which was allocated just now.
        std::vector<char> matrix(static_cast<std::size_t>(rows) * pitch, static_cast<char>(rank == 0 ? round : -1));
        if (rank == 0) {
            MPI_Send(matrix.data(), 1, type, 1, round, MPI_COMM_WORLD);
            continue;
        }
        MPI_Recv(matrix.data(), 1, type, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (std::size_t i = 0; i < matrix.size(); ++i) {
            num_wrong += matrix[i] != static_cast<char>(i % pitch < column ? round : -1);
        }
    }
    if (rank == 1) {
        std::printf("%d wrong bytes\n", num_wrong);
    }
    MPI_Type_free(&type);
    MPI_Finalize();
    return num_wrong != 0;
}

// A program that refers to one datatype of MPI only, of which the linker of some systems then makes a copy in the
// program. It sends long messages of doubles, or of complex numbers.
//
// usage: mpirun -n 2 mpi_one_type_calls_MPI, mpi_one_complex_type_calls_MPI
#include <cstdio>
#include <vector>

#include <mpi.h>

#ifdef OF_COMPLEX_NUMBERS
#define ONLY_TYPE MPI_C_DOUBLE_COMPLEX
constexpr int parts = 2; // of a number
#else
#define ONLY_TYPE MPI_DOUBLE
constexpr int parts = 1;
#endif

int main(int argc, char** argv)
{
    constexpr int length = 1 << 18, num_messages = 3;
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<double> numbers(length);
    long wrong = 0;
    for (int tag = 0; tag < num_messages; ++tag) {
        for (int i = 0; i < length; ++i) {
            numbers[static_cast<std::size_t>(i)] = rank == 0 ? i + tag : -1;
        }
        if (rank == 0) {
            MPI_Send(numbers.data(), length / parts, ONLY_TYPE, 1, tag, MPI_COMM_WORLD);
            continue;
        }
        MPI_Recv(numbers.data(), length / parts, ONLY_TYPE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < length; ++i) {
            wrong += numbers[static_cast<std::size_t>(i)] != i + tag ? 1 : 0;
        }
    }
    if (rank == 1) {
        std::printf("%ld wrong\n", wrong);
    }
    MPI_Finalize();
    return 0;
}

// A program that makes, uses and frees datatypes all the time: it says how much memory that costs.
//
// usage: mpirun -n 2 mpi_growth_calls_MPI NUMBER
//
// Each process uses 2 * NUMBER datatypes, until all that is kept is there, and then NUMBER again. It prints by how many
// bytes the memory that it has in use grew for each of the latter.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <unistd.h>
#include <vector>

namespace
{

long pages_in_use()
{
    long total = 0, resident = 0;
    if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%ld %ld", &total, &resident) != 2) {
            resident = 0;
        }
        std::fclose(file);
    }
    return resident;
}

// Of many shapes, so that few are the same as one before.
MPI_Datatype make_type(int number)
{
    const int lengths[]       = {1 + number % 7, 3, 2};
    const int displacements[] = {0, 20 + number % 1000, 5000};
    MPI_Datatype made;
    MPI_Type_indexed(3, lengths, displacements, MPI_DOUBLE, &made);
    MPI_Type_commit(&made);
    return made;
}

void use_types(int number, std::vector<double>& sent, std::vector<double>& received)
{
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < number; ++i) {
        MPI_Datatype type = make_type(i);
        const int count   = 1 + i % 3;
        MPI_Sendrecv(sent.data(), count, type, (rank + 1) % size, 0, received.data(), count, type,
                     (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Type_free(&type);
    }
}

} // namespace

int main(int argc, char** argv)
{
    const int number = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 1;
    MPI_Init(&argc, &argv);
    std::vector<double> sent(20000, 1), received(20000);
    use_types(2 * number, sent, received);
    const long before = pages_in_use();
    use_types(number, sent, received);
    std::printf("%ld bytes for each datatype\n", (pages_in_use() - before) * sysconf(_SC_PAGESIZE) / number);
    MPI_Finalize();
    return 0;
}

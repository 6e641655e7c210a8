// A program that makes, uses and frees datatypes all the time: it says how much memory that costs.
//
// usage: mpirun -n 2 mpi_growth_calls_MPI NUMBER
//
// Each process uses 2 * NUMBER datatypes (a multiple of 16), until all that is kept is there, and then NUMBER again. It
// prints by how many bytes the memory that it has in use grew for each of the latter, and whether there is a place for
// windows.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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

// The file with the figures of windows is there from the first context that may have some.
bool has_place_for_windows()
{
    bool is_found = false;
    if (std::FILE* const file = std::fopen("/proc/self/maps", "r")) {
        std::array<char, 4096> line{};
        while (!is_found && std::fgets(line.data(), static_cast<int>(line.size()), file) != nullptr) {
            is_found = std::strstr(line.data(), "ucx-layout-windows") != nullptr;
        }
        std::fclose(file);
    }
    return is_found;
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

// The memory of one message.
constexpr std::ptrdiff_t length = 20000;
// Processes that share a core wait for each other, so most messages go several at once.
constexpr int at_once = 16;

struct neighbors {
    int next = 0, previous = 0;
};

neighbors find_neighbors()
{
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return {(rank + 1) % size, (rank + size - 1) % size};
}

void use_types(int number, const std::vector<double>& sent, std::vector<double>& received)
{
    const neighbors near = find_neighbors();
    std::array<MPI_Datatype, at_once> types;
    std::array<MPI_Request, 2 * at_once> requests;
    for (int first = 0; first < number; first += at_once) {
        int num_requests = 0;
        for (int i = 0; i < at_once; ++i) {
            types[i]            = make_type(first + i);
            const int count     = 1 + (first + i) % 3;
            double* const place = received.data() + i * length;
            if (i == 0) {
                MPI_Sendrecv(sent.data(), count, types[i], near.next, 0, place, count, types[i], near.previous, 0,
                             MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                continue;
            }
            MPI_Irecv(place, count, types[i], near.previous, 0, MPI_COMM_WORLD, &requests[num_requests++]);
            MPI_Isend(sent.data(), count, types[i], near.next, 0, MPI_COMM_WORLD, &requests[num_requests++]);
        }
        MPI_Waitall(num_requests, requests.data(), MPI_STATUSES_IGNORE);
        for (MPI_Datatype& each : types) {
            MPI_Type_free(&each);
        }
    }
}

} // namespace

int main(int argc, char** argv)
{
    const int number = argc > 1 ? (std::max(std::atoi(argv[1]), 1) + at_once - 1) / at_once * at_once : at_once;
    MPI_Init(&argc, &argv);
    const std::vector<double> sent(length, 1);
    std::vector<double> received(at_once * length);
    use_types(2 * number, sent, received);
    const long before = pages_in_use();
    use_types(number, sent, received);
    std::printf("%ld bytes for each datatype, windows: %s\n",
                (pages_in_use() - before) * sysconf(_SC_PAGESIZE) / number, has_place_for_windows() ? "yes" : "no");
    MPI_Finalize();
    return 0;
}

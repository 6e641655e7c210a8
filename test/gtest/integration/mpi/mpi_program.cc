#include "mpi_program.h"

#include <cstdio>
#include <string_view>

namespace ucxl::test
{

int own_rank = 0, num_ranks = 0;
std::string current_call;

namespace
{

long num_compared = 0, num_wrong = 0;

bool has_version_of(std::string_view name)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length                                = 0;
    MPI_Get_library_version(text, &length);
    return std::string_view(text).starts_with(name);
}

} // namespace

void find_own_place()
{
    MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &num_ranks);
}

bool is_openmpi()
{
    static const bool is_it = has_version_of("Open MPI");
    return is_it;
}

bool is_mpich()
{
    static const bool is_it = has_version_of("MPICH");
    return is_it;
}

void expect(bool is_right, const std::string& text)
{
    ++num_compared;
    if (!is_right && ++num_wrong <= 10) {
        std::printf("rank %d: %s: %s\n", own_rank, current_call.c_str(), text.c_str());
    }
}

int report_comparisons()
{
    long totals[2] = {num_compared, num_wrong}, sums[2] = {};
    MPI_Reduce(totals, sums, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (own_rank == 0 && sums[0] == 0) {
        std::printf("nothing was compared\n");
        return 1;
    }
    if (own_rank == 0) {
        std::printf("%ld comparisons, %ld wrong\n", sums[0], sums[1]);
    }
    return num_wrong > 0 ? 1 : 0;
}

} // namespace ucxl::test

// Every call that moves datatypes, with random ones, between the processes of one mpirun. What arrives is compared with
// what MPI itself packs and unpacks (PMPI_Pack), and so are statuses.
//
// usage: mpirun -n N mpi_datatype_calls_MPI SEED ROUNDS [CALL...]; some only run by their names
// The datatypes of a CALL have its name.
// Prints what is wrong, and at the end "N comparisons, N wrong" by rank 0.
#include "calls.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace ucxl::test
{
int run(int argc, char** argv)
{
    find_own_place();
    if (argc < 3 || num_ranks % 2 != 0) {
        std::fprintf(stderr, "usage: mpirun -n 2 mpi_datatype_calls SEED ROUNDS [CALL...]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const std::uint64_t seed   = std::strtoull(argv[1], nullptr, 0);
    const std::uint64_t rounds = std::strtoull(argv[2], nullptr, 0);
    std::uint64_t number       = 0;
    std::vector<call_test> calls;
    add_message_calls(calls);
    add_collective_calls(calls);
    add_one_sided_calls(calls);
    add_partitioned_calls(calls);
    add_later_calls(calls);
    const std::span<char*> names(argv + 3, argv + argc);
    for (const std::string_view name : names) {
        if (std::ranges::find(calls, name, &call_test::name) == calls.end()) {
            std::fprintf(stderr, "mpi_datatype_calls: there is no call %s\n", name.data());
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
    }
    for (const call_test& each : calls) {
        ++number;
        if (names.empty() ? each.only_by_name : std::ranges::find(names, each.name) == names.end()) {
            continue;
        }
        name_of_types = names.empty() ? "" : each.name;
        for (std::uint64_t round = 0; round < rounds; ++round) {
            each.run(derive_seed(seed, number * 1000 + round));
        }
    }
    return report_comparisons();
}

} // namespace ucxl::test

int main(int argc, char** argv)
{
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ); // a process that is killed has told what it found
    int provided           = MPI_THREAD_SINGLE;
    const bool has_threads = argc > 3 && std::string_view(argv[3]).starts_with("threads");
    MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    if (has_threads && provided != MPI_THREAD_MULTIPLE) {
        std::printf("this MPI has no threads\n");
    }
    const int status = ucxl::test::run(argc, argv);
    MPI_Finalize();
    return status;
}

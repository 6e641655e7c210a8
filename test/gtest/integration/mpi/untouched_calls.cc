// Every call that moves datatypes, where pages that MPI may not touch are inaccessible, and those that it may only read
// are read-only: gaps of datatypes, blocks of neighbours that are not there, buffers of calls to no process and of
// roots and others where they do not count, what MPI_IN_PLACE leaves alone, and memory of persistent requests that do
// not run.
// docs/mpi-buffers.md has the table.
//
// usage: mpirun -n N untouched_calls_MPI SEED [bare] [CALL]
// "bare" is for runs without the library: what the MPI itself touches then is accessible.
// Prints what is wrong, and at the end "N comparisons, N wrong" by rank 0. A process that touches more says during
// which call, and ends.
#include "untouched_calls.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

namespace ucxl::test
{

bool is_bare = false;

namespace
{

std::uint64_t seed_of_run = 0;
char last_words[400];

[[noreturn]] void end_by_touch(int /*signal*/)
{
    [[maybe_unused]] const auto written = write(STDOUT_FILENO, last_words, std::strlen(last_words));
    _exit(3);
}

// They live as long as MPI.
std::vector<std::unique_ptr<element_shape>> all_shapes;

void make_shapes()
{
    using kind = element_shape::kind;
    for (const kind each : {kind::plain, kind::vector, kind::list, kind::records, kind::list}) {
        all_shapes.push_back(std::make_unique<element_shape>(each, derive_seed(seed_of_run, all_shapes.size())));
    }
}

} // namespace

void leave_to_mpi(guarded_elements& memory)
{
    if (is_bare || memory.is_plain()) {
        memory.be_lenient();
    }
}

turn next_turn(const std::string& what, form how)
{
    const char* const names[]   = {"", ", nonblocking", ", persistent"};
    static std::uint64_t number = 0;
    random numbers(derive_seed(seed_of_run, ++number));
    const std::size_t last = all_shapes.size() - 1;
    const std::size_t from = numbers.below(last + 1),
                      into = from == 0 ? 1 + numbers.below(last) : numbers.below(last + 1);
    current_call           = what + names[static_cast<int>(how)] + ", from " + all_shapes[from]->name() + " into " +
                   all_shapes[into]->name();
    std::snprintf(last_words, sizeof(last_words), "rank %d: %s: memory was touched that MPI must not touch\n", own_rank,
                  current_call.c_str());
    return {*all_shapes[from], *all_shapes[into], numbers.next()};
}

int run(int argc, char** argv)
{
    find_own_place();
    if (argc < 2 || num_ranks % 2 != 0) {
        std::fprintf(stderr, "usage: mpirun -n 2 untouched_calls SEED [bare] [CALL]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (sysconf(_SC_PAGESIZE) != static_cast<long>(page)) {
        std::printf("this machine has other pages\n");
        return 0;
    }
    std::signal(SIGSEGV, end_by_touch);
    seed_of_run = std::strtoull(argv[1], nullptr, 0);
    make_shapes();
    is_bare               = argc > 2 && std::strcmp(argv[2], "bare") == 0;
    const char* const one = argc > 2 + is_bare ? argv[2 + is_bare] : nullptr;
    std::vector<named_call> calls;
    add_messages(calls);
    add_collectives(calls);
    add_operations(calls);
    for (const auto& [name, run_all] : calls) {
        if (one == nullptr || std::strcmp(one, name) == 0) {
            run_all();
        }
    }
    all_shapes.clear();
    return report_comparisons();
}

} // namespace ucxl::test

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    const int status = ucxl::test::run(argc, argv);
    MPI_Finalize();
    return status;
}

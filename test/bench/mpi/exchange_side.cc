// The two processes of `bench mpi`: messages of datatypes, as an unmodified program sends them.
//
// usage: mpirun -n 2 bench_mpi_exchange_MPI PREFIX
// Rank R reads commands from the pipe PREFIX.R; rank 0 answers in the pipe PREFIX.out. While a command is awaited no
// process uses a processor: others are measured meanwhile.
#include "patterns.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace
{

using namespace ucxl::bench;
using clock_type = std::chrono::steady_clock;

class moved_pattern
{
public:
    moved_pattern(const pattern& chosen, int rank) : _peer(1 - rank), _is_first(rank == 0), _type(chosen.make())
    {
        MPI_Aint lb = 0, extent = 0;
        MPI_Type_get_true_extent(_type, &lb, &extent);
        MPI_Type_size(_type, &_size);
        _from.resize(static_cast<std::size_t>(extent));
        _into.resize(_from.size());
        for (std::size_t i = 0; i < _from.size(); ++i) {
            _from[i] = static_cast<char>(i * 2654435761u >> 13);
        }
        _shift = lb;
    }
    ~moved_pattern() { MPI_Type_free(&_type); }
    moved_pattern(const moved_pattern&)            = delete;
    moved_pattern& operator=(const moved_pattern&) = delete;

    int size() const { return _size; }

    void ping_pong()
    {
        if (_is_first) {
            MPI_Send(_from.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD);
            MPI_Recv(_into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(_into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(_into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD);
        }
    }

    void exchange()
    {
        MPI_Request requests[2];
        MPI_Irecv(_into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(_from.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }

    // Whether what comes back is what was sent.
    bool is_right()
    {
        std::ranges::fill(_into, '\0');
        ping_pong();
        const bool is_echo = packed(_from) == packed(_into);
        std::ranges::fill(_into, '\0');
        exchange();
        int is_all = is_echo && packed(_from) == packed(_into) ? 1 : 0, result = 0;
        MPI_Allreduce(&is_all, &result, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        return result == 1;
    }

private:
    std::vector<char> packed(std::vector<char>& memory) const
    {
        std::vector<char> bytes(static_cast<std::size_t>(_size));
        int position = 0;
        PMPI_Pack(memory.data() - _shift, 1, _type, bytes.data(), _size, &position, MPI_COMM_SELF);
        return bytes;
    }

    int _peer;
    bool _is_first;
    MPI_Datatype _type;
    int _size       = 0;
    MPI_Aint _shift = 0;
    std::vector<char> _from, _into;
};

// Of many short batches the fastest one: processes that wait for each other lose whole time slices to any third one.
double seconds_of(moved_pattern& moved, bool is_ping_pong, long number, long num_batches)
{
    double fastest = 1e9;
    for (long batch = 0; batch < num_batches; ++batch) {
        MPI_Barrier(MPI_COMM_WORLD);
        const auto start = clock_type::now();
        for (long i = 0; i < number; ++i) {
            is_ping_pong ? moved.ping_pong() : moved.exchange();
        }
        fastest = std::min(fastest, std::chrono::duration<double>(clock_type::now() - start).count());
    }
    return fastest / static_cast<double>(number) / (is_ping_pong ? 2 : 1);
}

// Of a send that goes nowhere: what the call itself takes.
double seconds_of_call(MPI_Datatype type, long number, long num_batches)
{
    static char buffer[4096];
    double fastest = 1e9;
    for (long batch = 0; batch < num_batches; ++batch) {
        const auto start = clock_type::now();
        for (long i = 0; i < number; ++i) {
            MPI_Send(buffer, 1, type, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
        }
        fastest = std::min(fastest, std::chrono::duration<double>(clock_type::now() - start).count());
    }
    return fastest / static_cast<double>(number);
}

// A datatype that is left to MPI because it is short.
MPI_Datatype short_vector()
{
    MPI_Datatype type;
    MPI_Type_vector(8, 4, 16, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

void serve(int rank, const std::string& prefix)
{
    std::ifstream commands(prefix + "." + std::to_string(rank));
    std::ofstream answers;
    if (rank == 0) {
        answers.open(prefix + ".out");
    }
    std::size_t current = SIZE_MAX;
    std::unique_ptr<moved_pattern> moved;
    std::string command;
    std::size_t index = 0;
    long number = 0, num_batches = 0;
    while (commands >> command >> index >> number >> num_batches) {
        if (command == "list") {
            for (const pattern& each : all_patterns()) {
                answers << each.family << '\t' << moved_pattern(each, rank).size() << '\t' << each.name << '\n';
            }
            answers << "end" << std::endl;
            continue;
        }
        if (command == "call-named" || command == "call-derived") {
            MPI_Datatype type    = command == "call-named" ? MPI_DOUBLE : short_vector();
            const double seconds = seconds_of_call(type, number, num_batches);
            if (type != MPI_DOUBLE) {
                MPI_Type_free(&type);
            }
            answers << seconds << std::endl;
            continue;
        }
        if (current != index) {
            moved.reset();
            moved   = std::make_unique<moved_pattern>(all_patterns().at(index), rank);
            current = index;
        }
        if (command == "check") {
            const bool is_right = moved->is_right();
            answers << (is_right ? "right" : "wrong") << std::endl;
        } else {
            answers << seconds_of(*moved, command == "ping-pong", number, num_batches) << std::endl;
        }
    }
}

} // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 2 || size != 2) {
        std::fprintf(stderr, "usage: mpirun -n 2 bench_mpi_exchange PREFIX; `bench mpi` runs it\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    serve(rank, argv[1]);
    MPI_Finalize();
    return 0;
}

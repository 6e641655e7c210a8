// The processes of `bench mpi`: messages of datatypes, as an unmodified program sends them. They are pairs, which all
// send at the same time, and all take part in collective calls; the first one's times count.
//
// usage: mpirun -n 2 bench_mpi_exchange_MPI PREFIX live|same BUFFERS
// live: each message is written before it is sent and read when it has come, one byte of each cache line, inside the
// time; same: nobody does. So many buffers are used in turn.
// Rank R reads commands from the pipe PREFIX.R; rank 0 answers in the pipe PREFIX.out. While a command is awaited no
// process uses a processor: others are measured meanwhile.
#include "bench/transfer/counter.h"
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
#include <utility>
#include <vector>

namespace
{

using namespace ucxl::bench;
using clock_type = std::chrono::steady_clock;

class moved_pattern
{
public:
    moved_pattern(const pattern& chosen, int rank, bool is_live, std::size_t num_buffers)
        : _rank(rank), _peer(rank ^ 1), _is_first(rank % 2 == 0), _type(chosen.make()), _buffers(num_buffers)
    {
        int num_processes = 0;
        MPI_Comm_size(MPI_COMM_WORLD, &num_processes);
        MPI_Aint lb = 0, extent = 0;
        MPI_Type_get_true_extent(_type, &lb, &extent);
        MPI_Type_size(_type, &_size);
        _shift = lb;
        for (buffer& each : _buffers) {
            each.from.resize(static_cast<std::size_t>(extent));
            each.into.resize(each.from.size());
            for (std::size_t i = 0; i < each.from.size(); ++i) {
                each.from[i] = static_cast<char>(i * 2654435761u >> 13);
            }
            if (is_live) {
                each.lines_from = lines_of(each.from);
                each.lines_into = lines_of(each.into);
            }
        }
        MPI_Type_create_resized(_type, 0, extent, &_apart);
        MPI_Type_commit(&_apart);
        const int one           = 1;
        const MPI_Aint at_start = -_shift;
        MPI_Type_create_hindexed(1, &one, &at_start, _type, &_at_start);
        MPI_Type_commit(&_at_start);
        for (int i = 0; i < num_processes; ++i) {
            _ones.push_back(1);
            _zeros.push_back(0);
            _places.push_back(i);
            _counts.push_back(i == _peer ? 1 : 0);
            _types.push_back(_type);
        }
    }
    ~moved_pattern()
    {
        for (buffer& each : _buffers) {
            if (each.window != MPI_WIN_NULL) {
                MPI_Win_free(&each.window);
            }
        }
        MPI_Type_free(&_at_start);
        MPI_Type_free(&_apart);
        MPI_Type_free(&_type);
    }
    moved_pattern(const moved_pattern&)            = delete;
    moved_pattern& operator=(const moved_pattern&) = delete;

    int size() const { return _size; }

    void ping_pong()
    {
        buffer& now = next();
        if (_is_first) {
            write(now.from, now.lines_from);
            MPI_Send(now.from.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD);
            MPI_Recv(now.into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            read(now.into, now.lines_into);
        } else {
            MPI_Recv(now.into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            read(now.into, now.lines_into);
            write(now.into, now.lines_into);
            MPI_Send(now.into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD);
        }
    }

    void exchange()
    {
        buffer& now = next();
        MPI_Request requests[2];
        write(now.from, now.lines_from);
        MPI_Irecv(now.into.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(now.from.data() - _shift, 1, _type, _peer, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        read(now.into, now.lines_into);
    }

    // Each pair at the same time, by a call of all processes.
    void all_to_all()
    {
        buffer& now = next();
        write(now.from, now.lines_from);
        MPI_Alltoallw(now.from.data() - _shift, _counts.data(), _zeros.data(), _types.data(), now.into.data() - _shift,
                      _counts.data(), _zeros.data(), _types.data(), MPI_COMM_WORLD);
        read(now.into, now.lines_into);
    }

    // Each process has its peer as its only neighbour.
    void neighbor_all_to_all()
    {
        buffer& now       = next();
        const int one     = 1;
        const MPI_Aint at = 0;
        write(now.from, now.lines_from);
        MPI_Neighbor_alltoallw(now.from.data() - _shift, &one, &at, &_type, now.into.data() - _shift, &one, &at, &_type,
                               neighbors());
        read(now.into, now.lines_into);
    }

    // The first process gets an element of each.
    void gather()
    {
        buffer& now = next();
        write(now.from, now.lines_from);
        if (_rank == 0) {
            now.gathered.resize(now.into.size() * _ones.size());
        }
        MPI_Gatherv(now.from.data() - _shift, 1, _type, now.gathered.data() - _shift, _ones.data(), _places.data(),
                    _apart, 0, MPI_COMM_WORLD);
        for (std::size_t i = 0; i < now.gathered.size(); i += now.into.size()) {
            read(now.gathered.data() + i, now.lines_into);
        }
    }

    // From the first process to all, and from its peer to all, so that the first one knows when it is over.
    void broadcast()
    {
        buffer& now = next();
        for (const int root : {0, 1}) {
            std::vector<char>& used = _rank == root ? now.from : now.into;
            if (_rank == root) {
                write(now.from, now.lines_from);
            }
            MPI_Bcast(used.data() - _shift, 1, _type, root, MPI_COMM_WORLD);
            if (_rank != root) {
                read(now.into, now.lines_into);
            }
        }
    }

    // Into the memory of the peer, with the datatype on both sides. A fence ends an epoch and begins the next one.
    void put()
    {
        buffer& now          = next();
        const MPI_Win window = window_over(now);
        write(now.from, now.lines_from);
        MPI_Put(now.from.data() - _shift, 1, _type, _peer, 0, 1, _at_start, window);
        MPI_Win_fence(0, window);
        read(now.into, now.lines_into);
    }

    // Out of it.
    void get()
    {
        buffer& now          = next();
        const MPI_Win window = window_over(now);
        write(now.into, now.lines_into);
        MPI_Win_fence(0, window);
        MPI_Get(now.from.data() - _shift, 1, _type, _peer, 0, 1, _at_start, window);
        MPI_Win_fence(0, window);
        read(now.from, now.lines_from);
    }

    // What the program does without a message.
    void work_alone()
    {
        buffer& now = next();
        write(now.from, now.lines_from);
        read(now.into, now.lines_into);
    }

    // Whether what comes back is what was sent, in each buffer.
    bool is_right()
    {
        bool is_right        = true;
        const auto move_each = [&](void (moved_pattern::*move)()) {
            for (buffer& each : _buffers) {
                std::ranges::fill(each.into, '\0');
            }
            for (std::size_t i = 0; i < _buffers.size(); ++i) {
                (this->*move)();
            }
            for (buffer& each : _buffers) {
                is_right = is_right && packed(each.from.data()) == packed(each.into.data());
            }
        };
        for (const auto move : {&moved_pattern::ping_pong, &moved_pattern::exchange, &moved_pattern::all_to_all,
                                &moved_pattern::neighbor_all_to_all, &moved_pattern::broadcast, &moved_pattern::put}) {
            move_each(move);
        }
        for (buffer& each : _buffers) { // what is in `into` is right now
            std::ranges::fill(each.from, '\0');
        }
        for (std::size_t i = 0; i < _buffers.size(); ++i) {
            get();
        }
        for (std::size_t i = 0; i < _buffers.size(); ++i) {
            gather();
        }
        for (buffer& each : _buffers) {
            is_right = is_right && packed(each.from.data()) == packed(each.into.data());
            for (std::size_t i = 0; i < each.gathered.size(); i += each.into.size()) {
                is_right = is_right && packed(each.gathered.data() + i) == packed(each.into.data());
            }
        }
        int is_all = is_right ? 1 : 0, result = 0;
        MPI_Allreduce(&is_all, &result, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        return result == 1;
    }

private:
    struct buffer {
        std::vector<char> from, into;
        std::vector<char> gathered; // an element of each process
        MPI_Win window = MPI_WIN_NULL;
        std::vector<std::uint32_t> lines_from, lines_into;
    };

    buffer& next()
    {
        _now = _now + 1 == _buffers.size() ? 0 : _now + 1;
        return _buffers[_now];
    }

    // A byte of the datatype in each line that it touches.
    std::vector<std::uint32_t> lines_of(const std::vector<char>& memory) const
    {
        constexpr std::uintptr_t line_length = 64;
        const std::vector<char> ones(static_cast<std::size_t>(_size), 1);
        std::vector<char> marks(memory.size());
        int position = 0;
        PMPI_Unpack(ones.data(), _size, &position, marks.data() - _shift, 1, _type, MPI_COMM_SELF);
        std::vector<std::uint32_t> places;
        std::uintptr_t last = 0;
        for (std::size_t i = 0; i < marks.size(); ++i) {
            const auto line = reinterpret_cast<std::uintptr_t>(memory.data() + i) / line_length;
            if (marks[i] != 0 && line != last) {
                places.push_back(static_cast<std::uint32_t>(i));
                last = line;
            }
        }
        return places;
    }
    // The bytes keep their values, so that what comes can be compared.
    static void write(std::vector<char>& memory, const std::vector<std::uint32_t>& places)
    {
        for (const auto place : places) {
            volatile char& byte = memory[place];
            byte                = byte;
        }
    }
    static void read(const std::vector<char>& memory, const std::vector<std::uint32_t>& places)
    {
        read(memory.data(), places);
    }
    static void read(const char* memory, const std::vector<std::uint32_t>& places)
    {
        for (const auto place : places) {
            static_cast<void>(*static_cast<const volatile char*>(&memory[place]));
        }
    }

    // Made when first used, by all processes.
    static MPI_Win window_over(buffer& memory)
    {
        if (memory.window == MPI_WIN_NULL) {
            MPI_Win_create(memory.into.data(), static_cast<MPI_Aint>(memory.into.size()), 1, MPI_INFO_NULL,
                           MPI_COMM_WORLD, &memory.window);
            MPI_Win_fence(0, memory.window);
        }
        return memory.window;
    }

    MPI_Comm neighbors() const
    {
        static const MPI_Comm made = [this] {
            MPI_Comm graph = MPI_COMM_NULL;
            MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &_peer, MPI_UNWEIGHTED, 1, &_peer, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &graph);
            return graph;
        }();
        return made;
    }

    std::vector<char> packed(const char* memory) const
    {
        std::vector<char> bytes(static_cast<std::size_t>(_size));
        int position = 0;
        PMPI_Pack(memory - _shift, 1, _type, bytes.data(), _size, &position, MPI_COMM_SELF);
        return bytes;
    }

    int _rank, _peer;
    bool _is_first;
    MPI_Datatype _type;
    MPI_Datatype _apart    = MPI_DATATYPE_NULL; // one behind the other
    MPI_Datatype _at_start = MPI_DATATYPE_NULL; // its first byte is at the address, as offsets in windows need
    std::vector<int> _ones, _zeros, _places, _counts;
    std::vector<MPI_Datatype> _types;
    int _size       = 0;
    MPI_Aint _shift = 0;
    std::vector<buffer> _buffers;
    std::size_t _now = 0; // both processes of a pair are at the same one
};

// Of many short batches the fastest one: processes that wait for each other lose whole time slices to any third one.
template <typename Move>
double seconds_of(long number, long num_batches, Move&& move)
{
    double fastest = 1e9;
    for (long batch = 0; batch < num_batches; ++batch) {
        MPI_Barrier(MPI_COMM_WORLD);
        const auto start = clock_type::now();
        for (long i = 0; i < number; ++i) {
            move();
        }
        fastest = std::min(fastest, std::chrono::duration<double>(clock_type::now() - start).count());
    }
    return fastest / static_cast<double>(number);
}

// A message of each kind takes so long.
double seconds_of(moved_pattern& moved, const std::string& kind, long number, long num_batches)
{
    if (kind == "ping-pong") {
        return seconds_of(number, num_batches, [&] { moved.ping_pong(); }) / 2;
    }
    if (kind == "bcast") {
        return seconds_of(number, num_batches, [&] { moved.broadcast(); }) / 2;
    }
    using member = void (moved_pattern::*)();
    for (const auto& [name, move] : {std::pair<const char*, member>{"exchange", &moved_pattern::exchange},
                                     {"alltoallw", &moved_pattern::all_to_all},
                                     {"neighbor", &moved_pattern::neighbor_all_to_all},
                                     {"gatherv", &moved_pattern::gather},
                                     {"put", &moved_pattern::put},
                                     {"get", &moved_pattern::get}}) {
        if (kind == name) {
            return seconds_of(number, num_batches, [&moved, move] { (moved.*move)(); });
        }
    }
    return seconds_of(number, num_batches, [&] { moved.work_alone(); });
}

// A line of the caches goes from the first process to the second one and back.
double seconds_of_round_trip(int rank, long number, long num_batches)
{
    MPI_Win shared;
    void* memory = nullptr;
    MPI_Win_allocate_shared(rank == 0 ? 2 * sizeof(counter) : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &shared);
    MPI_Aint length = 0;
    int unit        = 0;
    MPI_Win_shared_query(shared, 0, &length, &unit, &memory);
    auto* const turns = static_cast<counter*>(memory);
    if (rank == 0) {
        turns[0].set(0);
        turns[1].set(0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    std::uint64_t turn   = 0;
    const double seconds = seconds_of(number, num_batches, [&] {
        ++turn;
        if (rank == 1) {
            turns[0].wait_for(turn);
        }
        if (rank <= 1) {
            turns[rank].set(turn);
        }
        if (rank == 0) {
            turns[1].wait_for(turn);
        }
    });
    MPI_Win_free(&shared);
    return seconds;
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

void serve(int rank, const std::string& prefix, bool is_live, std::size_t num_buffers)
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
                answers << each.family << '\t' << moved_pattern(each, rank, false, 1).size() << '\t' << each.name
                        << '\n';
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
        if (command == "trip") {
            answers << seconds_of_round_trip(rank, number, num_batches) << std::endl;
            continue;
        }
        if (current != index) {
            moved.reset();
            moved   = std::make_unique<moved_pattern>(all_patterns().at(index), rank, is_live, num_buffers);
            current = index;
        }
        if (command == "check") {
            const bool is_right = moved->is_right();
            answers << (is_right ? "right" : "wrong") << std::endl;
        } else {
            answers << seconds_of(*moved, command, number, num_batches) << std::endl;
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
    const long num_buffers = argc == 4 ? std::atol(argv[3]) : 0;
    if (num_buffers < 1 || size % 2 != 0) {
        std::fprintf(stderr, "usage: mpirun -n 2 bench_mpi_exchange PREFIX live|same BUFFERS; `bench mpi` runs it\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    serve(rank, argv[1], std::strcmp(argv[2], "live") == 0, static_cast<std::size_t>(num_buffers));
    MPI_Finalize();
    return 0;
}

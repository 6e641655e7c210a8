// Random collective calls with long blocks in the heap between several processes: those with a block for each process,
// and broadcasts. Blocks are long enough to go in one pass, shorter, or empty, contiguous or by a datatype, in any
// order with gaps; calls are blocking, nonblocking, or persistent and started twice. Every byte of the receive buffer
// is compared, also those that nobody may write.
//
// usage: mpirun -n N mpi_long_collectives_MPI SEED CALLS
//
// Prints "N comparisons, M wrong". It knows nothing of the libraries, which the test preloads.
#include "support/random.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <numeric>
#include <vector>

namespace ucxl::test
{
namespace
{

int rank = 0, num_processes = 0;

// An element has 4096 bytes in 8192: rows of 64 bytes, or one, and behind each row a gap of its length.
struct element_type {
    MPI_Datatype type;
    int row; // bytes
};
constexpr std::uint32_t extent = 8192;

element_type make_type(int row)
{
    MPI_Datatype rows, type;
    MPI_Type_vector(4096 / row, row, 2 * row, MPI_BYTE, &rows);
    MPI_Type_create_resized(rows, 0, extent, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&rows);
    return {type, row};
}

// The bytes [begin, end) of a block.
void write(unsigned char* block, std::uint32_t begin, std::uint32_t end, int from, int into, int turn)
{
    const auto more = static_cast<std::uint32_t>(from * 53 + into * 19 + turn * 101);
    for (std::uint32_t i = begin; i < end; ++i) {
        block[i] = static_cast<unsigned char>(i * 7 + i / 509 + more);
    }
}

// Blocks of a buffer, in elements.
struct side {
    std::vector<int> counts, places;
    std::vector<int> byte_places;
    std::vector<MPI_Datatype> types;
    unsigned char* buffer = nullptr;
    std::size_t elements  = 0;

    side()                       = default;
    side(const side&)            = delete;
    side& operator=(const side&) = delete;
    ~side() { std::free(buffer); }

    // One block of each count, in any order, with gaps.
    void place(random& chosen, MPI_Datatype type, std::vector<int> all)
    {
        counts = std::move(all);
        std::vector<std::size_t> order(counts.size());
        std::iota(order.begin(), order.end(), 0);
        chosen.shuffle(order);
        places.assign(counts.size(), 0);
        for (const std::size_t each : order) {
            elements += chosen.below(3);
            places[each] = static_cast<int>(elements);
            elements += static_cast<std::size_t>(counts[each]);
        }
        types.assign(counts.size(), type);
        for (const int each : places) {
            byte_places.push_back(each * static_cast<int>(extent));
        }
        buffer = static_cast<unsigned char*>(std::malloc((elements + 1) * extent));
    }
    unsigned char* block(std::size_t index) { return buffer + static_cast<std::size_t>(places[index]) * extent; }
    std::uint32_t length(std::size_t index) const { return static_cast<std::uint32_t>(counts[index]) * extent; }
};

int some_count(random& chosen)
{
    switch (chosen.below(5)) {
    case 0:
        return 0;
    case 1:
        return static_cast<int>(chosen.between(1, 127)); // below 512 KB
    default:
        return static_cast<int>(chosen.between(128, 150));
    }
}

enum class call : unsigned char { alltoallv, alltoallw, gatherv, scatterv, broadcast, number };
enum class form : unsigned char { blocking, nonblocking, persistent, number };

struct request_of {
    form how;
    MPI_Request* request;

    template <typename Blocking, typename Nonblocking, typename Persistent, typename... Arguments>
    void begin(Blocking blocking, Nonblocking nonblocking, Persistent persistent, Arguments... arguments) const
    {
        switch (how) {
        case form::blocking:
            blocking(arguments..., MPI_COMM_WORLD);
            break;
        case form::nonblocking:
            nonblocking(arguments..., MPI_COMM_WORLD, request);
            break;
        default:
            persistent(arguments..., MPI_COMM_WORLD, MPI_INFO_NULL, request);
        }
    }
};

// One call, the same in all processes.
class experiment
{
public:
    experiment(random& common, random& own, const element_type& type)
        : _type(type), _sent_type(own.one_in(3) ? make_type(type.row).type : type.type),
          _received_type(own.one_in(3) ? make_type(type.row).type : type.type),
          _which(static_cast<call>(common.below(static_cast<std::size_t>(call::number)))),
          _how(static_cast<form>(common.below(static_cast<std::size_t>(form::number)))),
          _root(static_cast<int>(common.below(static_cast<std::size_t>(num_processes)))), _is_in_place(common.one_in(3))
    {
        std::vector<std::vector<int>> counts(static_cast<std::size_t>(num_processes)); // by sender and receiver
        for (auto& row : counts) {
            for (int i = 0; i < num_processes; ++i) {
                row.push_back(some_count(common));
            }
        }
        const auto own_rank = static_cast<std::size_t>(rank), root = static_cast<std::size_t>(_root);
        std::vector<int> column;
        for (const auto& row : counts) {
            column.push_back(row[_which == call::gatherv ? root : own_rank]);
        }
        const bool is_root = rank == _root;
        switch (_which) {
        case call::alltoallv:
        case call::alltoallw:
            _from.place(own, _sent_type, counts[own_rank]);
            _into.place(own, _received_type, column);
            break;
        case call::gatherv:
            _from.place(own, _sent_type, {counts[own_rank][root]});
            _into.place(own, _received_type, is_root ? column : std::vector<int>());
            break;
        case call::scatterv:
            _from.place(own, _sent_type, is_root ? counts[root] : std::vector<int>());
            _into.place(own, _received_type, {counts[root][own_rank]});
            break;
        default:
            _from.place(own, _sent_type, is_root ? std::vector{counts[root][root]} : std::vector<int>());
            _into.place(own, _received_type, is_root ? std::vector<int>() : std::vector{counts[root][root]});
        }
    }

    // Returns whether a byte was wrong.
    bool run()
    {
        MPI_Request request = MPI_REQUEST_NULL;
        long wrong          = 0;
        fill(0);
        begin({_how, &request});
        if (_how != form::persistent) { // Open MPI 5.0.7 crashes by itself if a started one has lost its datatype
            free_own_types();
        }
        for (int turn = 0; turn < (_how == form::persistent ? 2 : 1); ++turn) {
            if (_how == form::persistent) {
                fill(turn);
                MPI_Start(&request);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            wrong += num_wrong(turn);
        }
        if (_how == form::persistent) {
            MPI_Request_free(&request);
            free_own_types();
        }
        if (wrong > 0) {
            std::printf("rank %d, call %d, form %d, rows of %d, root %d, in place %d: %ld wrong\n", rank,
                        static_cast<int>(_which), static_cast<int>(_how), _type.row, _root, _is_in_place, wrong);
        }
        return wrong > 0;
    }

private:
    bool is_left_in_place(std::size_t block) const
    {
        return _is_in_place && rank == _root &&
               ((_which == call::gatherv && static_cast<int>(block) == rank) || _which == call::scatterv);
    }

    void begin(const request_of& request)
    {
        void* const from   = _from.buffer;
        void* const into   = _into.buffer;
        const bool is_root = rank == _root && _is_in_place;
        const int one_sent = _from.counts.empty() ? 0 : _from.counts[0];
        const int one_got  = _into.counts.empty() ? 0 : _into.counts[0];
        // Of one block, which has a place of its own.
        void* const first_sent = _from.counts.empty() ? from : _from.block(0);
        void* const first_got  = _into.counts.empty() ? into : _into.block(0);
        switch (_which) {
        case call::alltoallv:
            request.begin(MPI_Alltoallv, MPI_Ialltoallv, MPI_Alltoallv_init, from, _from.counts.data(),
                          _from.places.data(), _sent_type, into, _into.counts.data(), _into.places.data(),
                          _received_type);
            break;
        case call::alltoallw:
            request.begin(MPI_Alltoallw, MPI_Ialltoallw, MPI_Alltoallw_init, from, _from.counts.data(),
                          _from.byte_places.data(), _from.types.data(), into, _into.counts.data(),
                          _into.byte_places.data(), _into.types.data());
            break;
        case call::gatherv:
            request.begin(MPI_Gatherv, MPI_Igatherv, MPI_Gatherv_init, is_root ? MPI_IN_PLACE : first_sent, one_sent,
                          _sent_type, into, _into.counts.data(), _into.places.data(), _received_type, _root);
            break;
        case call::scatterv:
            request.begin(MPI_Scatterv, MPI_Iscatterv, MPI_Scatterv_init, from, _from.counts.data(),
                          _from.places.data(), _sent_type, is_root ? MPI_IN_PLACE : first_got, one_got, _received_type,
                          _root);
            break;
        default:
            request.begin(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, rank == _root ? first_sent : first_got,
                          rank == _root ? one_sent : one_got, rank == _root ? _sent_type : _received_type, _root);
        }
    }

    void free_own_types()
    {
        for (MPI_Datatype each : {_sent_type, _received_type}) {
            if (each != _type.type) {
                MPI_Type_free(&each);
            }
        }
    }

    void fill(int turn)
    {
        for (std::size_t i = 0; i < _from.counts.size(); ++i) {
            const int into = _which == call::gatherv ? _root : _which == call::broadcast ? 0 : static_cast<int>(i);
            write(_from.block(i), 0, _from.length(i), rank, into, turn);
        }
        std::memset(_into.buffer, 0x5a, (_into.elements + 1) * extent);
    }

    long num_wrong(int turn)
    {
        std::vector<unsigned char> wanted((_into.elements + 1) * extent, 0x5a);
        for (std::size_t i = 0; i < _into.counts.size(); ++i) {
            const int from = _which == call::scatterv || _which == call::broadcast ? _root : static_cast<int>(i);
            const int into = _which == call::broadcast ? 0 : rank;
            unsigned char* const block = wanted.data() + static_cast<std::size_t>(_into.places[i]) * extent;
            const auto row             = static_cast<std::uint32_t>(_type.row);
            for (std::uint32_t begin = 0; begin < _into.length(i) && !is_left_in_place(i); begin += 2 * row) {
                write(block, begin, begin + row, from, into, turn);
            }
        }
        long wrong = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            wrong += _into.buffer[i] != wanted[i];
        }
        return wrong;
    }

    const element_type& _type;
    MPI_Datatype _sent_type, _received_type; // perhaps made for this call, so that nothing is known of them
    call _which;
    form _how;
    int _root;
    bool _is_in_place;
    side _from, _into;
};

} // namespace

int wrong_calls(unsigned long long seed, int calls, int provided)
{
    int level = -1;
    MPI_Query_thread(&level);
    if (level != provided) {
        std::printf("the thread level is %d, not %d\n", level, provided);
        return calls;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &num_processes);
    random common(seed), own(seed + 1 + static_cast<unsigned>(rank));
    const element_type types[] = {make_type(4096), make_type(64)};
    int wrong                  = 0;
    for (int i = 0; i < calls; ++i) {
        wrong += experiment(common, own, types[common.below(2)]).run();
    }
    return wrong;
}

} // namespace ucxl::test

int main(int argc, char** argv)
{
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (argc < 3) {
        return 1;
    }
    const int calls = std::atoi(argv[2]);
    const int wrong = ucxl::test::wrong_calls(std::strtoull(argv[1], nullptr, 10), calls, provided);
    std::printf("%d comparisons, %d wrong\n", calls, wrong);
    MPI_Finalize();
    return wrong > 0;
}

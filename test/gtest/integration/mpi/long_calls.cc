// Two processes send each other long messages by every kind of call, between memory of the heap (malloc), or static
// arrays in its place, and memory that is neither (mmap), contiguous or by datatypes. Every byte is compared, also
// those that nobody may write, and so is what the status says.
//
// usage: mpirun -n 2 mpi_long_calls_MPI [SAMPLES] [static] [collective]
//        SAMPLES: only the first ones, numbers of MPI around the least length
//        collective: only by collective calls
//
// Prints "N comparisons, M wrong". It knows nothing of the libraries, which the test preloads.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <sys/mman.h>
#include <vector>

namespace
{

int rank = 0, peer = 0;
long num_comparisons = 0, num_wrong = 0;

bool uses_static_arrays = false;
unsigned char static_arrays[2][8 << 20]; // what is sent, and what is received

class memory
{
public:
    memory(bool is_heap, std::size_t length, int which) : _is_heap(is_heap), _length(length)
    {
        if (is_heap && uses_static_arrays) {
            _start = length <= sizeof(static_arrays[which]) ? static_arrays[which] : nullptr;
        } else {
            _start = static_cast<unsigned char*>(
                is_heap ? std::malloc(length)
                        : mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        }
    }
    ~memory()
    {
        if (!_is_heap) {
            munmap(_start, _length);
        } else if (!uses_static_arrays) {
            std::free(_start);
        }
    }
    memory(const memory&)            = delete;
    memory& operator=(const memory&) = delete;

    unsigned char& operator[](std::size_t i) { return _start[i]; }
    unsigned char* data() { return _start; }

private:
    bool _is_heap;
    std::size_t _length;
    unsigned char* _start;
};

// Elements of one datatype, of whose bytes some are sent.
struct sample {
    MPI_Datatype type;
    int count;
    std::size_t extent; // bytes, of all elements
    std::size_t length, pitch;
    std::size_t size() const { return extent / pitch * length; }
};

// Bytes that differ by their place, and from call to call. They come from a table, because there are gigabytes of them.
void fill(unsigned char* bytes, std::size_t length, int sender, int round, std::size_t place = 0)
{
    static const std::vector<unsigned char> table = [] {
        std::vector<unsigned char> made(sizeof(static_arrays[0]) + 2 * 8192);
        for (std::size_t i = 0; i < made.size(); ++i) {
            made[i] = static_cast<unsigned char>(i * 13 + i / 251);
        }
        return made;
    }();
    const auto first = static_cast<std::size_t>(sender * 8192 + round % 128 * 61);
    std::memcpy(bytes, table.data() + place + first, length);
}

// What elements that were received hold.
void fill_moved(unsigned char* elements, const sample& chosen, int sender, int round)
{
    for (std::size_t block = 0; block < chosen.extent; block += chosen.pitch) {
        fill(elements + block, chosen.length, sender, round, block);
    }
}

constexpr unsigned char poison = 0x5a; // what memory holds that receives

enum class way {
    exchange,
    exchange_nonblocking,
    blocking,
    nonblocking,
    persistent,
    matched,
    longer_receive,
    broadcast, // the first collective call
    broadcast_nonblocking,
    gatherv, // the first one that fills two blocks
    scatterv,
    alltoallv,
    alltoallw,
    alltoallw_nonblocking,
    neighbors,
    number
};

bool is_collective(way by)
{
    return by >= way::broadcast;
}
// MPICH before 4.3 frees the datatype of what MPI_Isendrecv sends, if it is none of its own.
bool may_move(way by, MPI_Datatype type)
{
    return by != way::exchange_nonblocking || type == MPI_DOUBLE || type == MPI_CHAR;
}
bool fills_two_blocks(way by)
{
    return by >= way::gatherv;
}

// Of a graph in which each process has the other one as its neighbour two times.
MPI_Comm twice_neighbors()
{
    static MPI_Comm comm = MPI_COMM_NULL;
    if (comm == MPI_COMM_NULL) {
        const int both[] = {peer, peer};
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, both, MPI_UNWEIGHTED, 2, both, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                       0, &comm);
    }
    return comm;
}

MPI_Datatype committed(MPI_Datatype type)
{
    MPI_Type_commit(&type);
    return type;
}

MPI_Datatype vector(int blocks, int length, int pitch)
{
    MPI_Datatype type, resized;
    MPI_Type_vector(blocks, length, pitch, MPI_BYTE, &type);
    MPI_Type_create_resized(type, 0, MPI_Aint{blocks} * pitch, &resized);
    MPI_Type_free(&type);
    return committed(resized);
}

// The first block comes from the other process, the second one from this process, or from the other one again.
void move_two_blocks(way by, const sample& chosen, unsigned char* mine, unsigned char* theirs)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    const int extent     = static_cast<int>(chosen.extent);
    const int counts[2] = {chosen.count, chosen.count}, same_place[2] = {0, 0};
    const int elements[2]          = {rank == 0 ? chosen.count : 0, rank == 0 ? 0 : chosen.count};
    const int bytes[2]             = {rank == 0 ? extent : 0, rank == 0 ? 0 : extent};
    const MPI_Datatype types[2]    = {chosen.type, chosen.type};
    const MPI_Aint same_address[2] = {0, 0}, addresses[2] = {0, extent};
    MPI_Request request = MPI_REQUEST_NULL;
    switch (by) {
    case way::gatherv:
        for (const int root : {0, 1}) {
            MPI_Gatherv(mine, chosen.count, chosen.type, theirs, counts, elements, chosen.type, root, world);
        }
        break;
    case way::scatterv:
        for (const int root : {0, 1}) {
            MPI_Scatterv(mine, counts, same_place, chosen.type, rank == root ? theirs + extent : theirs, chosen.count,
                         chosen.type, root, world);
        }
        break;
    case way::alltoallv:
        MPI_Alltoallv(mine, counts, same_place, chosen.type, theirs, counts, elements, chosen.type, world);
        break;
    case way::alltoallw:
        MPI_Alltoallw(mine, counts, same_place, types, theirs, counts, bytes, types, world);
        break;
    case way::alltoallw_nonblocking:
        MPI_Ialltoallw(mine, counts, same_place, types, theirs, counts, bytes, types, world, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        break;
    case way::neighbors:
        MPI_Neighbor_alltoallw(mine, counts, same_address, types, theirs, counts, addresses, types, twice_neighbors());
        break;
    default:
        break;
    }
}

// Other bytes with each start, at last those of the round, which the caller compares.
void move_persistently(const sample& chosen, unsigned char* mine, unsigned char* theirs, int round, MPI_Status* status)
{
    MPI_Request both[2];
    MPI_Status statuses[2];
    MPI_Recv_init(theirs, chosen.count, chosen.type, peer, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Send_init(mine, chosen.count, chosen.type, peer, 1, MPI_COMM_WORLD, &both[1]);
    for (const int later : {2, 1, 0}) {
        std::vector<unsigned char> expected(chosen.extent, poison);
        fill_moved(expected.data(), chosen, peer, round + later);
        fill(mine, chosen.extent, rank, round + later);
        std::memset(theirs, poison, chosen.extent);
        MPI_Startall(2, both);
        MPI_Waitall(2, both, statuses);
        if (later > 0) {
            ++num_comparisons;
            if (std::memcmp(theirs, expected.data(), chosen.extent) != 0) {
                ++num_wrong;
                std::printf("rank %d, start %d of a persistent request, %zu bytes: wrong\n", rank, 3 - later,
                            chosen.size());
            }
        }
    }
    *status = statuses[0];
    MPI_Request_free(&both[0]);
    MPI_Request_free(&both[1]);
}

void move(way by, const sample& chosen, unsigned char* mine, unsigned char* theirs, int count_received, int round,
          MPI_Status* status)
{
    const MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request both[2];
    MPI_Status statuses[2];
    MPI_Message message;
    switch (by) {
    case way::exchange:
        MPI_Sendrecv(mine, chosen.count, chosen.type, peer, 1, theirs, chosen.count, chosen.type, peer, 1, world,
                     status);
        break;
    case way::exchange_nonblocking: {
        MPI_Isendrecv(mine, chosen.count, chosen.type, peer, 1, theirs, chosen.count, chosen.type, peer, 1, world,
                      &both[0]);
        MPI_Wait(&both[0], status);
        // Gets the handle of a datatype that was freed.
        [[maybe_unused]] static const MPI_Datatype later = vector(3, 8, 16);
        break;
    }
    case way::blocking:
        for (const int sender : {0, 1}) {
            if (rank == sender) {
                MPI_Ssend(mine, chosen.count, chosen.type, peer, 1, world);
            } else {
                MPI_Recv(theirs, chosen.count, chosen.type, MPI_ANY_SOURCE, MPI_ANY_TAG, world, status);
            }
        }
        break;
    case way::nonblocking:
    case way::longer_receive:
        MPI_Irecv(theirs, count_received, chosen.type, peer, 1, world, &both[0]);
        MPI_Isend(mine, chosen.count, chosen.type, peer, 1, world, &both[1]);
        MPI_Waitall(2, both, statuses);
        *status = statuses[0];
        break;
    case way::persistent:
        move_persistently(chosen, mine, theirs, round, status);
        break;
    case way::matched:
        MPI_Isend(mine, chosen.count, chosen.type, peer, 1, world, &both[0]);
        MPI_Mprobe(peer, 1, world, &message, status);
        MPI_Mrecv(theirs, chosen.count, chosen.type, &message, status);
        MPI_Wait(&both[0], MPI_STATUS_IGNORE);
        break;
    case way::broadcast:
        for (const int root : {0, 1}) {
            MPI_Bcast(rank == root ? mine : theirs, chosen.count, chosen.type, root, world);
        }
        break;
    case way::broadcast_nonblocking:
        for (const int root : {0, 1}) {
            MPI_Ibcast(rank == root ? mine : theirs, chosen.count, chosen.type, root, world, &both[0]);
            MPI_Wait(&both[0], MPI_STATUS_IGNORE);
        }
        break;
    default:
        move_two_blocks(by, chosen, mine, theirs);
    }
}

void try_one(way by, const sample& chosen, bool is_sent_from_heap, bool is_received_in_heap, int round)
{
    const int more = by == way::longer_receive ? chosen.count + chosen.count / 2 : chosen.count;
    const std::size_t room =
        fills_two_blocks(by) ? 2 * chosen.extent
                             : chosen.extent / static_cast<std::size_t>(chosen.count) * static_cast<std::size_t>(more);
    const int second = by == way::neighbors ? peer : rank; // who sent the second block
    memory mine(is_sent_from_heap, chosen.extent, 0), theirs(is_received_in_heap, room, 1);
    fill(mine.data(), chosen.extent, rank, round);
    std::memset(theirs.data(), poison, room);
    std::vector<unsigned char> expected(room, poison);
    fill_moved(expected.data(), chosen, peer, round);
    if (fills_two_blocks(by)) {
        fill_moved(expected.data() + chosen.extent, chosen, second, round);
    }
    MPI_Status status;
    move(by, chosen, mine.data(), theirs.data(), more, round, &status);
    const bool is_right = std::memcmp(theirs.data(), expected.data(), room) == 0;
    long wrong          = 0;
    for (std::size_t i = 0; !is_right && i < room; ++i) {
        wrong += theirs[i] != expected[i];
    }
    if (!is_collective(by)) {
        int count = 0;
        MPI_Get_count(&status, chosen.type, &count);
        wrong += count != chosen.count || status.MPI_SOURCE != peer || status.MPI_TAG != 1;
    }
    ++num_comparisons;
    if (wrong > 0) {
        ++num_wrong;
        std::printf("rank %d, way %d, %zu bytes, from heap %d, in heap %d: %ld wrong\n", rank, static_cast<int>(by),
                    chosen.size(), is_sent_from_heap, is_received_in_heap, wrong);
    }
}

MPI_Datatype contiguous(int count)
{
    MPI_Datatype type;
    MPI_Type_contiguous(count, MPI_BYTE, &type);
    return committed(type);
}

std::vector<sample> samples()
{
    constexpr std::size_t limit = 512 << 10, kb = 1024;
    std::vector<sample> all;
    // Around the length from which on messages go in one pass, and beyond.
    for (const std::size_t bytes : {limit - 8, limit, 3 * limit + 40}) {
        all.push_back({MPI_DOUBLE, static_cast<int>(bytes / 8), bytes, bytes, bytes});
    }
    all.push_back({MPI_CHAR, 2000001, 2000001, 2000001, 2000001});
    all.push_back({contiguous(4096), 256, 1024 * kb, 1024 * kb, 1024 * kb});
    all.push_back({vector(10000, 64, 128), 1, 10000 * 128, 64, 128});
    all.push_back({vector(64, 4096, 8192), 3, 3 * 512 * kb, 4096, 8192});
    all.push_back({vector(70000, 8, 24), 1, 70000 * 24, 8, 24});
    return all;
}

} // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer      = 1 - rank;
    int round = 0, first = 0;
    std::vector<sample> all = samples();
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "static") == 0) {
            uses_static_arrays = true;
        } else if (std::strcmp(argv[i], "collective") == 0) {
            first = static_cast<int>(way::broadcast);
        } else {
            all.resize(static_cast<std::size_t>(std::atoi(argv[i])));
        }
    }
    for (const sample& each : all) {
        for (int by = first; by < static_cast<int>(way::number); ++by) {
            for (int places = 0; places < 4 && may_move(static_cast<way>(by), each.type); ++places) {
                try_one(static_cast<way>(by), each, (places & 1) == 0, (places & 2) == 0, ++round);
            }
        }
    }
    std::printf("%ld comparisons, %ld wrong\n", num_comparisons, num_wrong);
    MPI_Finalize();
    return num_wrong > 0;
}

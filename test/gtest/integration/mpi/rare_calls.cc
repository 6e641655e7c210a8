// A program whose calls are rare. Each process prints "N wrong".
//
// usage: mpirun -n 2 mpi_rare_calls_MPI MODE
//        empty: MPI_Alltoallw with blocks of no elements, whose datatypes are none
//        places: messages of one datatype from the heap, from more other buffers than there are windows, and then long
//                messages from the heap again
//        failed: collective calls whose requests end with an error; memory holds what it held, or what was sent
//        waitall: MPI_Waitall for a get and a message, after one for an array that is NULL
//        pending: MPI_Waitall for a message that is too long and a persistent collective call, which ends later; a
//                 request is freed before. The first process also prints "N pending".
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mpi.h>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace
{

int rank = 0, peer = 0;

MPI_Datatype every_second(int blocks, int block)
{
    MPI_Datatype vector, made;
    MPI_Type_vector(blocks, block, 2 * block, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, MPI_Aint{2} * blocks * block * static_cast<MPI_Aint>(sizeof(int)), &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&vector);
    return made;
}

long exchange_some_blocks()
{
    long wrong = 0;
#ifdef MPICH
    const auto none = static_cast<MPI_Datatype>(0x8c0003ff); // a number that MPICH has given to no datatype
#else
    const MPI_Datatype none = MPI_INT; // Open MPI itself looks at all of them
#endif
    for (int round = 0; round < 5; ++round) {
        const int sent[2] = {rank + round, rank + round}, places[2] = {0, 4};
        int received[2] = {-1, -1}, counts[2] = {0, 0};
        MPI_Datatype types[2] = {none, none};
        counts[peer]          = 1;
        types[peer]           = MPI_INT;
        MPI_Alltoallw(sent, counts, places, types, received, counts, places, types, MPI_COMM_WORLD);
        wrong += received[peer] != peer + round || received[rank] != -1 ? 1 : 0;
    }
    return wrong;
}

long exchange(int* sent, int* received, int count, MPI_Datatype type, int step)
{
    long wrong = 0;
    for (int i = 0; i < count; ++i) {
        sent[i]     = rank + 2 * i;
        received[i] = -1;
    }
    const int elements = type == MPI_BYTE ? count * static_cast<int>(sizeof(int)) : 1;
    MPI_Sendrecv(sent, elements, type, peer, 0, received, elements, type, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i) {
        wrong += received[i] != (i / step % 2 == 0 ? peer + 2 * i : -1) ? 1 : 0;
    }
    return wrong;
}

long use_all_windows()
{
    constexpr int blocks = 8192, block = 64, count = 2 * blocks * block, num_others = 12;
    constexpr std::size_t length = count * sizeof(int);
    const MPI_Datatype type      = every_second(blocks, block);
    std::vector<int*> heap;
    for (int i = 0; i < 4; ++i) {
        heap.push_back(static_cast<int*>(std::malloc(length)));
    }
    long wrong = exchange(heap[0], heap[1], count, type, block);
    for (int i = 0; i < num_others; ++i) {
        void* const other = mmap(nullptr, 2 * length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        auto* const first = static_cast<int*>(other);
        wrong += exchange(first, first + count, count, type, block); // it stays mapped, as memory of programs does
    }
    wrong += exchange(heap[2], heap[3], count, type, block);
    for (int i = 0; i < 3; ++i) {
        wrong += exchange(heap[0], heap[1], count, MPI_BYTE, count);
    }
    for (int* const each : heap) {
        std::free(each);
    }
    return wrong;
}

constexpr int blocks = 1 << 18; // so long that nothing arrives of a message that is too long

enum class way_to_end { wait, get_status, wait_any, test_some };

// Each process receives as many elements as it sends from each. What it sends is in pages that end with this.
struct gathering {
    std::size_t length; // numbers that are sent
    int* sent;
    std::vector<int> received;
    MPI_Request request = MPI_REQUEST_NULL;

    gathering(int elements, int first_value, MPI_Datatype type, MPI_Comm comm, bool is_persistent)
        : length(static_cast<std::size_t>(elements) * 2 * blocks),
          sent(static_cast<int*>(
              mmap(nullptr, length * sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
          received(2 * length, -1)
    {
        for (std::size_t i = 0; i < length; ++i) {
            sent[i] = first_value + static_cast<int>(i);
        }
        if (is_persistent) {
            MPI_Allgather_init(sent, elements, type, received.data(), elements, type, comm, MPI_INFO_NULL, &request);
            MPI_Start(&request);
        } else {
            MPI_Iallgather(sent, elements, type, received.data(), elements, type, comm, &request);
        }
    }
    gathering(const gathering&)            = delete;
    gathering& operator=(const gathering&) = delete;
    ~gathering()
    {
        if (request != MPI_REQUEST_NULL) { // Open MPI frees one that failed
            MPI_Request_free(&request);
        }
        munmap(sent, length * sizeof(int));
    }

    long values_of_earlier_calls(int first_value) const
    {
        return std::ranges::count_if(received, [=](int each) { return each != -1 && each < first_value; });
    }
};

// So that requests end, or fail, unseen.
void let_mpi_work()
{
    int flag = 0;
    for (const double end = MPI_Wtime() + 0.3; MPI_Wtime() < end;) {
        MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

int end(gathering& ended, way_to_end way)
{
    int result = MPI_SUCCESS, flag = 0, number = 0, index = 0;
    switch (way) {
    case way_to_end::wait:
        break;
    case way_to_end::get_status:
        while (flag == 0) {
            MPI_Request_get_status(ended.request, &flag, MPI_STATUS_IGNORE);
        }
        break;
    case way_to_end::wait_any: { // it names another one
        int one = 1, two = 0;
        MPI_Request both[2] = {MPI_REQUEST_NULL, ended.request}, received;
        MPI_Irecv(&two, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &received);
        MPI_Isend(&one, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &both[0]);
        MPI_Wait(&received, MPI_STATUS_IGNORE);
        let_mpi_work();
        result        = MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
        ended.request = both[1];
        break;
    }
    case way_to_end::test_some:
        while (number == 0) {
            result = MPI_Testsome(1, &ended.request, &number, &index, MPI_STATUSES_IGNORE);
        }
        break;
    }
    const int last = MPI_Wait(&ended.request, MPI_STATUS_IGNORE);
    return result == MPI_SUCCESS ? last : result;
}

// MPI may give them the handle of a request that failed.
void start_others()
{
    for (int i = 0; i < 16; ++i) {
        int mine = rank, sum = 0;
        MPI_Request request;
        MPI_Allreduce_init(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

MPI_Comm communicator_that_returns_errors()
{
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}

// One process sends more than the other one has room for. Before, memory of the library held something else.
long gather_too_much(MPI_Datatype type, bool is_persistent, way_to_end way)
{
    constexpr int earlier = 1000000, last = 5000000;
    const MPI_Comm comm = communicator_that_returns_errors();
    for (int round = 0; round < 3; ++round) {
        gathering right(1, earlier, type, comm, is_persistent);
        end(right, way_to_end::wait);
    }
    long wrong = 0;
    {
        gathering failing(rank == 0 ? 2 : 1, last, type, comm, is_persistent);
        if (end(failing, way) != MPI_SUCCESS) {
            std::printf("failed%s\n", is_persistent ? " persistent" : "");
        }
        wrong = failing.values_of_earlier_calls(last);
    }
    start_others(); // what was sent is gone
    return wrong;
}

// Open MPI frees both when it names one of them.
long gather_too_much_twice(MPI_Datatype type)
{
    constexpr int earlier = 1000000, last = 5000000;
    const MPI_Comm comms[2] = {communicator_that_returns_errors(), communicator_that_returns_errors()};
    for (int round = 0; round < 3; ++round) {
        gathering one(1, earlier, type, comms[0], false), two(1, earlier, type, comms[1], false);
        end(one, way_to_end::wait);
        end(two, way_to_end::wait);
    }
    const int elements = rank == 0 ? 2 : 1;
    gathering one(elements, last, type, comms[0], false), two(elements, last, type, comms[1], false);
    let_mpi_work();
    MPI_Request both[2] = {one.request, two.request};
    int index           = 0;
    MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    one.request = two.request = MPI_REQUEST_NULL;
    return one.values_of_earlier_calls(last) + two.values_of_earlier_calls(last);
}

long wait_for_get_and_message(MPI_Datatype type)
{
    constexpr int tag = 5;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    std::vector<int> shown(blocks), received(2 * blocks, -1);
    for (int i = 0; i < blocks; ++i) {
        shown[i] = 1000000 * (rank + 1) + i;
    }
    MPI_Win win;
    MPI_Win_create(shown.data(), blocks * MPI_Aint{sizeof(int)}, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    long wrong = 0;
    for (int round = 0; round < 4; ++round) {
        int got = -1;
        MPI_Request requests[2];
        MPI_Status statuses[2];
        std::memset(statuses, 0x5a, sizeof(statuses));
        MPI_Rget(received.data(), 1, type, peer, 0, blocks, MPI_INT, win, &requests[0]);
        MPI_Irecv(&got, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[1]);
        wrong += MPI_Waitall(2, nullptr, statuses) == MPI_SUCCESS ? 1 : 0;
        MPI_Send(&rank, 1, MPI_INT, peer, tag, MPI_COMM_WORLD);
        wrong += MPI_Waitall(2, requests, statuses) != MPI_SUCCESS ? 1 : 0;
        wrong += statuses[1].MPI_SOURCE != peer || statuses[1].MPI_TAG != tag || got != peer ? 1 : 0;
        for (int i = 0; i < blocks; ++i) {
            wrong += received[2 * i] != 1000000 * (peer + 1) + i || received[2 * i + 1] != -1 ? 1 : 0;
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    return wrong;
}

long wait_for_pending_call()
{
    constexpr int tag = 6, num_rounds = 40, length = 8192;
    const MPI_Datatype type = every_second(length / 2, 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    std::vector<int> sent(2 * length), received(2 * length);
    MPI_Request freed;
    if (rank == 0) {
        MPI_Isend(sent.data(), 1, type, peer, tag, MPI_COMM_WORLD, &freed);
        MPI_Request_free(&freed);
    } else {
        MPI_Recv(received.data(), 1, type, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    long wrong = 0, pending = 0;
    for (int round = 0; round < num_rounds; ++round) {
        std::ranges::fill(sent, 1000 * round + rank);
        std::ranges::fill(received, -1);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        MPI_Alltoall_init(sent.data(), 1, type, received.data(), 1, type, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            int got = 0, kind = MPI_SUCCESS;
            MPI_Irecv(&got, 1, MPI_INT, peer, tag, MPI_COMM_WORLD, &requests[0]);
            MPI_Start(&requests[1]);
            usleep(2000); // all is there when MPI looks for the first
            wrong += MPI_Waitall(2, requests, statuses) == MPI_SUCCESS ? 1 : 0;
            MPI_Error_class(statuses[1].MPI_ERROR, &kind);
            pending += kind == MPI_ERR_PENDING ? 1 : 0;
        } else {
            const int too_much[64] = {};
            MPI_Send(too_much, 64, MPI_INT, peer, tag, MPI_COMM_WORLD);
            MPI_Start(&requests[1]);
        }
        wrong += MPI_Wait(&requests[1], MPI_STATUS_IGNORE) != MPI_SUCCESS ? 1 : 0;
        for (int i = 0; i < 2 * length; ++i) {
            wrong += received[i] != (i % 2 == 0 ? 1000 * round + i / length : -1) ? 1 : 0;
        }
        MPI_Request_free(&requests[1]);
    }
    if (rank == 0) {
        std::printf("%ld pending\n", pending);
    }
    return wrong;
}

} // namespace

int main(int argc, char** argv)
{
    const std::string_view mode = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer       = 1 - rank;
    long wrong = 0;
    if (mode == "empty") {
        wrong = exchange_some_blocks();
    } else if (mode == "places") {
        wrong = use_all_windows();
    } else if (mode == "failed") {
        const MPI_Datatype type = every_second(blocks, 1);
        for (const bool is_persistent : {false, true}) {
            for (const auto way :
                 {way_to_end::wait, way_to_end::get_status, way_to_end::wait_any, way_to_end::test_some}) {
                wrong += gather_too_much(type, is_persistent, way);
            }
        }
        wrong += gather_too_much_twice(type);
    } else if (mode == "waitall") {
        wrong = wait_for_get_and_message(every_second(blocks, 1));
    } else if (mode == "pending") {
        wrong = wait_for_pending_call();
    }
    std::printf("%ld wrong\n", wrong);
    MPI_Finalize();
    return wrong > 0;
}

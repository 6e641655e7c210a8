// A program that ends its requests late: one by a flush, and one in the callback that MPI calls first of all in
// MPI_Finalize. Each process prints "N wrong" for each of them. Or one that frees its requests while they are running,
// and calls MPI_Finalize: the second process prints "N wrong" for each message.
//
// usage: mpirun -n 2 mpi_end_calls_MPI [session | freed]
//        session: it has a session before MPI_Init, which ends before MPI does
#include <chrono>
#include <cstdio>
#include <mpi.h>
#include <string_view>
#include <thread>
#include <vector>

namespace
{

constexpr int length = 20000, stride = 2; // numbers

int value(int rank, int index)
{
    return 1000000 * (rank + 1) + index;
}

void print_wrong(const char* name, const std::vector<int>& received, int first_rank, int own_stride)
{
    long wrong = 0;
    for (std::size_t i = 0; i * stride < received.size(); ++i) {
        const int rank = first_rank + static_cast<int>(i) / length, index = static_cast<int>(i) % length;
        wrong += received[i * stride] != value(rank, index * own_stride) ? 1 : 0;
    }
    std::printf("%s: %ld wrong\n", name, wrong);
    std::fflush(stdout);
}

struct late_exchange {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<int> received;
};

int end(MPI_Comm /*comm*/, int /*keyval*/, void* value, void* /*extra*/)
{
    auto& exchanged  = *static_cast<late_exchange*>(value);
    const int status = MPI_Wait(&exchanged.request, MPI_STATUS_IGNORE);
    print_wrong("finalize", exchanged.received, 0, stride);
    return status;
}

MPI_Datatype numbers_every(int distance)
{
    MPI_Datatype vector, made;
    MPI_Type_vector(length, 1, distance, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, MPI_Aint{length} * distance * static_cast<MPI_Aint>(sizeof(int)), &made);
    MPI_Type_commit(&made);
    MPI_Type_free(&vector);
    return made;
}

// With a datatype that is used at targets only.
void get(int rank, MPI_Datatype own)
{
    constexpr int distance = 3;
    std::vector<int> shown(length * distance), received(length * stride, -1);
    for (int i = 0; i < length * distance; ++i) {
        shown[i] = value(rank, i);
    }
    const MPI_Datatype there = numbers_every(distance);
    MPI_Win win;
    MPI_Win_create(shown.data(), MPI_Aint{length} * distance * static_cast<MPI_Aint>(sizeof(int)), 1, MPI_INFO_NULL,
                   MPI_COMM_WORLD, &win);
    MPI_Request request;
    MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank, 0, win);
    MPI_Rget(received.data(), 1, own, 1 - rank, 0, 1, there, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(1 - rank, win); // MPICH says too early that the request has ended
    print_wrong("get", received, 1 - rank, distance);
    MPI_Win_free(&win);
}

// MPI_Finalize ends what was freed. Nobody sends what the second process would receive last.
void free_running(int rank)
{
    constexpr int number = 400000, num_messages = 3, unmatched = 9;
    const MPI_Datatype column = [] {
        MPI_Datatype made;
        MPI_Type_vector(number / 4, 4, 4 * stride, MPI_INT, &made);
        MPI_Type_commit(&made);
        return made;
    }();
    static std::vector<int> buffers[num_messages]; // MPI uses them in MPI_Finalize
    MPI_Request request;
    for (int tag = 0; tag < num_messages; ++tag) {
        buffers[tag].assign(number * stride, -1);
        if (rank == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(tag == 0 ? 700 : 0));
            MPI_Recv(buffers[tag].data(), 1, column, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            long wrong = 0;
            for (int i = 0; i < number * stride; ++i) {
                wrong += buffers[tag][i] != (i / 4 % stride == 0 ? value(tag, i) : -1) ? 1 : 0;
            }
            std::printf("message %d: %ld wrong\n", tag, wrong);
            std::fflush(stdout);
            continue;
        }
        for (int i = 0; i < number * stride; ++i) {
            buffers[tag][i] = value(tag, i);
        }
        if (tag == 1) {
            MPI_Send_init(buffers[tag].data(), 1, column, 1, tag, MPI_COMM_WORLD, &request);
            MPI_Start(&request);
        } else {
            MPI_Isend(buffers[tag].data(), 1, column, 1, tag, MPI_COMM_WORLD, &request);
        }
        MPI_Request_free(&request);
    }
    if (rank == 1) {
        MPI_Irecv(buffers[0].data(), 1, column, 0, unmatched, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
}

} // namespace

int main(int argc, char** argv)
{
    const std::string_view chosen = argc > 1 ? argv[1] : "";
    MPI_Session session           = MPI_SESSION_NULL;
    if (chosen == "session") {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    }
    MPI_Init(&argc, &argv);
    if (chosen == "session") {
        MPI_Session_finalize(&session);
    }
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (chosen == "freed") {
        free_running(rank);
        MPI_Finalize();
        return 0;
    }
    const MPI_Datatype own = numbers_every(stride);
    std::vector<int> sent(length * stride);
    for (int i = 0; i < length * stride; ++i) {
        sent[i] = value(rank, i);
    }
    static late_exchange last; // MPI looks at it in MPI_Finalize
    last.received.assign(2 * sent.size(), -1);
    for (int round = 0; round < 4; ++round) { // the library learns the datatype
        MPI_Allgather(sent.data(), 1, own, last.received.data(), 1, own, MPI_COMM_WORLD);
    }
    get(rank, own);
    last.received.assign(2 * sent.size(), -1);
    int keyval = MPI_KEYVAL_INVALID;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &keyval, nullptr);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &last);
    MPI_Iallgather(sent.data(), 1, own, last.received.data(), 1, own, MPI_COMM_WORLD, &last.request);
    MPI_Finalize();
}

// A program that ends its requests late: one by a flush, and one in the callback that MPI calls first of all in
// MPI_Finalize. Each process prints "N wrong" for each of them. Or one that frees its requests while they are running,
// and calls MPI_Finalize: the process that receives prints "N wrong" for each message.
//
// usage: mpirun -n 2 mpi_end_calls_MPI [session | freed | late | both | unmatched | truncated]
//        session: it has a session before MPI_Init, which ends before MPI does
//        freed: the second process receives what the first one has freed when that is in MPI_Finalize, and frees a
//               receive that nobody sends to
//        late: the first process frees a receive, and the second one sends to it when the first one is in MPI_Finalize
//        both: the same with a send that is freed, too
//        unmatched: the first process frees what the second one does not know of
//        truncated: the first process frees a receive of less than the second one sends, and then another request
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

constexpr int number = 400000;

MPI_Datatype column()
{
    MPI_Datatype made;
    MPI_Type_vector(number / 4, 4, 4 * stride, MPI_INT, &made);
    MPI_Type_commit(&made);
    return made;
}

void print_wrong_of_message(int tag, const std::vector<int>& received)
{
    long wrong = 0;
    for (int i = 0; i < number * stride; ++i) {
        wrong += received[i] != (i / 4 % stride == 0 ? value(tag, i) : -1) ? 1 : 0;
    }
    std::printf("message %d: %ld wrong\n", tag, wrong);
    std::fflush(stdout);
}

void fill(std::vector<int>& sent, int tag)
{
    for (int i = 0; i < number * stride; ++i) {
        sent[i] = value(tag, i);
    }
}

void sleep_for_long()
{
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

// MPI_Finalize ends what was freed. Nobody sends what the second process would receive last.
void free_running(int rank)
{
    constexpr int num_messages = 3, unmatched = 9;
    const MPI_Datatype type = column();
    static std::vector<int> buffers[num_messages]; // MPI uses them in MPI_Finalize
    MPI_Request request;
    for (int tag = 0; tag < num_messages; ++tag) {
        buffers[tag].assign(number * stride, -1);
        if (rank == 1) {
            if (tag == 0) {
                sleep_for_long();
            }
            MPI_Recv(buffers[tag].data(), 1, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            print_wrong_of_message(tag, buffers[tag]);
            continue;
        }
        fill(buffers[tag], tag);
        if (tag == 1) {
            MPI_Send_init(buffers[tag].data(), 1, type, 1, tag, MPI_COMM_WORLD, &request);
            MPI_Start(&request);
        } else {
            MPI_Isend(buffers[tag].data(), 1, type, 1, tag, MPI_COMM_WORLD, &request);
        }
        MPI_Request_free(&request);
    }
    if (rank == 1) {
        MPI_Irecv(buffers[0].data(), 1, type, 0, unmatched, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
}

// The receive ends in MPI_Finalize.
void send_late(int rank, bool frees_both)
{
    const MPI_Datatype type = column();
    static std::vector<int> buffer(number * stride, -1); // MPI uses it in MPI_Finalize
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Irecv(buffer.data(), 1, type, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Finalize();
        print_wrong_of_message(0, buffer);
        return;
    }
    fill(buffer, 0);
    sleep_for_long();
    if (frees_both) {
        MPI_Isend(buffer.data(), 1, type, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    } else {
        MPI_Send(buffer.data(), 1, type, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}

// Each MPI alone ends this: MPICH refuses to end when a message comes that nobody receives, Open MPI to free a request
// that sends and receives.
void free_unmatched(int rank)
{
    static std::vector<int> sent(number * stride, 1), received(number * stride, -1);
    const MPI_Datatype type = column();
    MPI_Request request     = MPI_REQUEST_NULL;
#ifdef MPICH
    if (rank == 0) {
        MPI_Isendrecv(sent.data(), 1, type, 1, 0, received.data(), 1, type, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    } else {
        MPI_Recv(received.data(), 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
#else
    if (rank == 0) {
        MPI_Isend(sent.data(), 1, type, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
#endif
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}

// MPI says nothing of the error.
void free_truncated(int rank)
{
    static std::vector<int> buffer(2 * number * stride, rank);
    const MPI_Datatype type = column();
    MPI_Request request     = MPI_REQUEST_NULL;
    if (rank == 0) {
        MPI_Irecv(buffer.data(), 1, type, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        MPI_Barrier(MPI_COMM_WORLD);
        sleep_for_long();
        MPI_Isend(buffer.data(), 1, type, 1, 1, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send(buffer.data(), 2, type, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer.data(), 1, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
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
    if (chosen == "late" || chosen == "both") {
        send_late(rank, chosen == "both");
        return 0;
    }
    if (chosen == "unmatched") {
        free_unmatched(rank);
        return 0;
    }
    if (chosen == "truncated") {
        free_truncated(rank);
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

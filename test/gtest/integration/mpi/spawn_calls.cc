// A program whose processes start one more, which may run without the library: messages of a strided datatype between
// that one and their first one, of which every number is compared.
//
// usage: mpirun -n 2 mpi_spawn_calls_MPI WAY FIRST COMMAND [ARGUMENT...]
//
// WAY is what the new process does: sends, receives, or both at once. FIRST is "exchange" if the others send each other
// such messages before they start it. COMMAND starts it; this program and the WAY are its last arguments. Each process
// that exchanges prints "N wrong" or "failed: TEXT" after its name.
#include <cstdio>
#include <cstdlib>
#include <mpi.h>
#include <string>
#include <string_view>
#include <vector>

namespace
{

// What a process sends, number by number.
int number_of(int sender, int index)
{
    return sender * 1000000 + index;
}

constexpr int blocks = 10000, length = 16, stride = 36; // numbers; blocks of 64 bytes, 640 KB

class exchange
{
public:
    exchange(std::string name, MPI_Comm comm, int peer, int own_number, int peers_number)
        : _name(std::move(name)), _comm(comm), _peer(peer), _peers_number(peers_number),
          _received(blocks * stride, unchanged)
    {
        for (int i = 0; i < blocks * stride; ++i) {
            _sent.push_back(number_of(own_number, i));
        }
        MPI_Type_vector(blocks, length, stride, MPI_INT, &_columns);
        MPI_Type_commit(&_columns);
    }
    ~exchange() { MPI_Type_free(&_columns); }
    exchange(const exchange&)            = delete;
    exchange& operator=(const exchange&) = delete;

    void send() { note(MPI_Send(_sent.data(), 1, _columns, _peer, 0, _comm)); }
    void receive()
    {
        note(MPI_Recv(_received.data(), 1, _columns, _peer, 0, _comm, MPI_STATUS_IGNORE));
        compare();
    }
    void send_and_receive()
    {
        note(MPI_Sendrecv(_sent.data(), 1, _columns, _peer, 0, _received.data(), 1, _columns, _peer, 0, _comm,
                          MPI_STATUS_IGNORE));
        compare();
    }

    void print() const
    {
        if (_failure == MPI_SUCCESS) {
            std::printf("%s: %ld wrong\n", _name.c_str(), _wrong);
        } else {
            char text[MPI_MAX_ERROR_STRING] = {};
            int text_length                 = 0;
            MPI_Error_string(_failure, text, &text_length);
            std::printf("%s: failed: %s\n", _name.c_str(), text);
        }
        std::fflush(stdout);
        if (_failure != MPI_SUCCESS) {
            // The peer waits. Open MPI's launcher does not always end after MPI_Abort with processes of two jobs.
            std::_Exit(1);
        }
    }

private:
    static constexpr int unchanged = -1;

    void note(int status) { _failure = _failure == MPI_SUCCESS ? status : _failure; }
    void compare()
    {
        for (int i = 0; i < blocks * stride; ++i) {
            _wrong += _received[i] != (i % stride < length ? number_of(_peers_number, i) : unchanged) ? 1 : 0;
            _received[i] = unchanged;
        }
    }

    const std::string _name;
    const MPI_Comm _comm;
    const int _peer, _peers_number;
    std::vector<int> _sent, _received;
    MPI_Datatype _columns = MPI_DATATYPE_NULL;
    long _wrong           = 0;
    int _failure          = MPI_SUCCESS;
};

constexpr int parents_number = 1, childs_number = 2, rounds = 3;

void exchange_with(const std::string& name, MPI_Comm comm, bool sends, bool receives, int own_number, int peers_number)
{
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    exchange messages(name, comm, 0, own_number, peers_number);
    for (int i = 0; i < rounds; ++i) {
        if (sends && receives) {
            messages.send_and_receive();
        } else if (sends) {
            messages.send();
        } else {
            messages.receive();
        }
    }
    messages.print();
}

void exchange_first(int rank, int size)
{
    exchange messages("first", MPI_COMM_WORLD, size - 1 - rank, rank, size - 1 - rank);
    for (int i = 0; i < rounds; ++i) {
        messages.send_and_receive();
    }
    messages.print();
}

MPI_Comm start_child(int argc, char** argv)
{
    std::vector<char*> arguments(argv + 4, argv + argc);
    arguments.insert(arguments.end(), {argv[0], argv[1], nullptr});
    MPI_Comm child = MPI_COMM_NULL;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_spawn(argv[3], arguments.data(), 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child, MPI_ERRCODES_IGNORE);
    return child;
}

} // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    const std::string_view way = argc > 1 ? argv[1] : "";
    MPI_Comm parent            = MPI_COMM_NULL;
    int rank = 0, size = 0;
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (parent != MPI_COMM_NULL) {
        exchange_with("child", parent, way != "receives", way != "sends", childs_number, parents_number);
    } else if (argc > 3) {
        if (argv[2] == std::string_view("exchange")) {
            exchange_first(rank, size);
        }
        const MPI_Comm child = start_child(argc, argv);
        if (child == MPI_COMM_NULL) {
            std::printf("no process was started\n");
        } else if (rank == 0) {
            exchange_with("parent", child, way != "sends", way != "receives", parents_number, childs_number);
        }
    }
    MPI_Finalize();
    return 0;
}

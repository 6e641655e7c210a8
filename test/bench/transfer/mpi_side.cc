// A peer of `bench transfer`: the two processes by one MPI library, with datatypes or packed by hand.
//
// usage: mpirun -n 2 bench_mpi_transfer FIFO MEMORY
#include "bench/common/mpi_type.h"

#include "sides.h"

#include <cstdio>

namespace
{

using namespace ucxl::bench;

class mpi_side : public side
{
public:
    explicit mpi_side(int peer) : _peer(peer) {}
    ~mpi_side() override { release(); }
    mpi_side(const mpi_side&)            = delete;
    mpi_side& operator=(const mpi_side&) = delete;

    void prepare(const layout_case& of, const side_memory& memory) override
    {
        release();
        _type   = mpi_type_of(*of.type);
        _length = static_cast<int>(of.length);
        _memory = memory;
    }

    void send_packed() override { send(_memory.packed_source.data(), _length, MPI_BYTE); }
    void receive_packed() override { receive(_memory.packed_target.data(), _length, MPI_BYTE); }
    void send_strided() override { send(_memory.source.data(), 1, _type); }
    void receive_strided() override { receive(_memory.target.data(), 1, _type); }

    bool moves_lists() const override { return true; }
    void send_list(const block_order& list) override
    {
        const list_type type(list);
        send(_memory.source.data(), 1, type.made);
    }
    void receive_list(const block_order& list) override
    {
        const list_type type(list);
        receive(_memory.target.data(), 1, type.made);
    }

    void progress() override
    {
        int arrived = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
    }

private:
    struct list_type {
        explicit list_type(const block_order& list)
        {
            const std::vector<MPI_Aint> offsets(list.offsets.begin(), list.offsets.end());
            MPI_Type_create_hindexed_block(static_cast<int>(offsets.size()), static_cast<int>(list.length),
                                           offsets.data(), MPI_BYTE, &made);
            MPI_Type_commit(&made);
        }
        ~list_type() { MPI_Type_free(&made); }
        list_type(const list_type&)            = delete;
        list_type& operator=(const list_type&) = delete;

        MPI_Datatype made;
    };

    void send(const void* from, int count, MPI_Datatype type) const
    {
        MPI_Send(from, count, type, _peer, 1, MPI_COMM_WORLD);
    }

    void receive(void* to, int count, MPI_Datatype type) const
    {
        MPI_Recv(to, count, type, _peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    void release()
    {
        if (_type != MPI_DATATYPE_NULL) {
            MPI_Type_free(&_type);
        }
    }

    int _peer;
    MPI_Datatype _type = MPI_DATATYPE_NULL;
    int _length        = 0;
    side_memory _memory;
};

} // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || size != 2) {
        std::fprintf(stderr, "usage: mpirun -n 2 bench_mpi_transfer FIFO MEMORY; `bench transfer` runs it\n");
        return 2;
    }
    try {
        take_one(rank == 0);
        side_loop([&] { return std::make_unique<mpi_side>(1 - rank); }, rank == 0, argv[2]).serve(argv[1]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_mpi_transfer: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Finalize();
    return 0;
}

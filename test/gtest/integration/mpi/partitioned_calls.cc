// Partitioned communication. Open MPI 5.0.7 alone looks for the partitions of derived datatypes in the wrong places (it
// takes the size for the extent), so these only run by their name, with the library.
#include "calls.h"

namespace ucxl::test
{
namespace
{

constexpr int num_partitions = 8;

void make_ready(int kind, MPI_Request request)
{
    int list[] = {5, 0, 2};
    switch (kind % 3) {
    case 0:
        for (int i = num_partitions - 1; i >= 0; --i) {
            MPI_Pready(i, request);
        }
        break;
    case 1:
        MPI_Pready_range(1, num_partitions - 1, request);
        MPI_Pready(0, request);
        break;
    default:
        MPI_Pready_list(3, list, request);
        MPI_Pready(1, request);
        MPI_Pready_range(3, 4, request);
        MPI_Pready_range(6, 7, request);
    }
}

// Even ranks send partitions to the next odd ones. The memory is filled only when a partition is about to be ready.
void run_partitioned(round_seed seed, int kind)
{
    const int peer  = own_rank ^ 1;
    const auto call = draw_collective(seed, num_partitions, true);
    const int count = call->counts[0], total = num_partitions * count;
    current_call = "partitioned, way " + std::to_string(kind) + ", of " + call->type.text();
    typed_memory memory(call->handle(), total), source(call->handle(), total), wanted(call->handle(), total);
    MPI_Request request;
    if (own_rank % 2 == 0) {
        MPI_Psend_init(memory.buffer(), num_partitions, count, call->handle(), peer, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    } else {
        MPI_Precv_init(memory.buffer(), num_partitions, count, call->handle(), peer, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    }
    // The second start of Open MPI 5.0.7 sends partitions that are not ready.
    const int num_turns = is_openmpi() ? 1 : 3;
    for (int turn = 0; turn < num_turns; ++turn) {
        const auto data = seed + 10 * static_cast<std::uint64_t>(turn);
        fill_for(source, data, 0);
        random junk(data + 1);
        memory.fill(junk);
        MPI_Start(&request);
        if (own_rank % 2 == 0) {
            memory.bytes() = source.bytes();
            make_ready(kind, request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            continue;
        }
        wanted.bytes() = memory.bytes();
        for (int i = 0; i < num_partitions; ++i) {
            unpack_part(wanted, *call, i * count, count, packed_part(source, *call, i * count, count));
        }
        for (int i = 0; kind < 3 && i < num_partitions; ++i) {
            for (int has_arrived = 0; has_arrived == 0;) {
                MPI_Parrived(request, i, &has_arrived);
            }
            expect(packed_part(memory, *call, i * count, count) == packed_part(wanted, *call, i * count, count),
                   "wrong bytes in partition " + std::to_string(i));
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_same(wanted, memory, "all partitions");
    }
    MPI_Request_free(&request);
}

} // namespace

void add_partitioned_calls(std::vector<call_test>& calls)
{
    calls.push_back({"partitioned",
                     [](round_seed seed) {
                         for (int kind = 0; kind < 6; ++kind) {
                             run_partitioned(seed + static_cast<std::uint64_t>(kind), kind);
                         }
                     },
                     true});
}

} // namespace ucxl::test

// Collective calls: the blocking, the nonblocking and the persistent form of each, also with large counts.
#include "calls.h"

#include <tuple>

namespace ucxl::test
{
namespace
{

enum class form : unsigned char { blocking, nonblocking, persistent };

struct {
    form how       = form::blocking;
    bool is_large  = false; // MPI_..._c
    int num_starts = 3;     // of a persistent request; an odd number of exchanges in place is the same as one
    unsigned turn  = 0;     // of the calls that end requests
} current;

// A list that is passed as whichever type of numbers the form of a call has.
class numbers
{
public:
    numbers(const std::vector<int>& list) // NOLINT(google-explicit-constructor): stands for an argument
        : _lists(list, std::vector<long>(list.begin(), list.end()), std::vector<long long>(list.begin(), list.end()))
    {
    }
    template <typename Number>
    operator const Number*() const // NOLINT(google-explicit-constructor)
    {
        return std::get<std::vector<Number>>(_lists).data();
    }

private:
    std::tuple<std::vector<int>, std::vector<long>, std::vector<long long>> _lists;
};

// Ends a request by each of the calls that can, in turn.
void end(MPI_Request& request)
{
    MPI_Request both[2] = {MPI_REQUEST_NULL, request};
    int index = 0, has_ended = 0, number = 0, indices[2] = {};
    unsigned turn = current.turn++ % 8;
    // MPI_Testall of MPICH 4.2.1 ends the program when it meets a persistent collective call.
    turn = turn == 5 && is_mpich() && current.how == form::persistent ? 4 : turn;
    switch (turn) {
    case 0:
        MPI_Wait(&both[1], MPI_STATUS_IGNORE);
        break;
    case 1:
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        break;
    case 2:
        MPI_Waitany(2, both, &index, MPI_STATUS_IGNORE);
        expect(index == 1, "MPI_Waitany");
        break;
    case 3:
        MPI_Waitsome(2, both, &number, indices, MPI_STATUSES_IGNORE);
        expect(number == 1 && indices[0] == 1, "MPI_Waitsome");
        break;
    case 4:
        while (has_ended == 0) {
            MPI_Test(&both[1], &has_ended, MPI_STATUS_IGNORE);
        }
        break;
    case 5:
        while (has_ended == 0) {
            MPI_Testall(2, both, &has_ended, MPI_STATUSES_IGNORE);
        }
        break;
    case 6:
        while (has_ended == 0) {
            MPI_Testany(2, both, &index, &has_ended, MPI_STATUS_IGNORE);
        }
        expect(index == 1, "MPI_Testany");
        break;
    default:
        while (number == 0) {
            MPI_Testsome(2, both, &number, indices, MPI_STATUSES_IGNORE);
        }
        expect(number == 1 && indices[0] == 1, "MPI_Testsome");
    }
    request = both[1];
}

template <typename Blocking, typename Nonblocking, typename Persistent, typename... Arguments>
void call_as(Blocking* blocking, Nonblocking* nonblocking, Persistent* persistent, const Arguments&... arguments)
{
    MPI_Request request = MPI_REQUEST_NULL;
    switch (current.how) {
    case form::blocking:
        blocking(arguments...);
        break;
    case form::nonblocking:
        nonblocking(arguments..., &request);
        end(request);
        expect(request == MPI_REQUEST_NULL, "the request goes on");
        break;
    case form::persistent:
        persistent(arguments..., MPI_INFO_NULL, &request);
        for (int i = 0; i < current.num_starts; ++i) {
            if (i == 1) {
                MPI_Startall(1, &request);
            } else {
                MPI_Start(&request);
            }
            end(request);
            expect(request != MPI_REQUEST_NULL, "a persistent request ended");
        }
        MPI_Request_free(&request);
        break;
    }
}

#if MPI_VERSION >= 4
#define CALL(name, nonblocking, persistent, ...)                                                                       \
    (current.is_large ? call_as(MPI_##name##_c, MPI_##nonblocking##_c, MPI_##persistent##_c, __VA_ARGS__)              \
                      : call_as(MPI_##name, MPI_##nonblocking, MPI_##persistent, __VA_ARGS__))
#else
#define CALL(name, nonblocking, persistent, ...) call_as(MPI_##name, MPI_##nonblocking, MPI_##persistent, __VA_ARGS__)
#endif

void run_bcast(round_seed seed)
{
    const auto call = draw_collective(seed, num_ranks, true);
    const int root  = static_cast<int>(seed % static_cast<std::uint64_t>(num_ranks));
    current_call    = "bcast of " + call->type.text();
    typed_memory own(call->handle(), call->counts[0]), wanted(call->handle(), call->counts[0]),
        source(call->handle(), call->counts[0]);
    fill_for(own, seed, own_rank);
    fill_for(wanted, seed, own_rank);
    fill_for(source, seed, root);
    wanted.unpack(source.packed());
    CALL(Bcast, Ibcast, Bcast_init, own.buffer(), call->counts[0], call->handle(), root, MPI_COMM_WORLD);
    expect_same(wanted, own, "bcast");
}

// A block of every rank to the root, or to all.
void run_gathers(round_seed seed, bool are_equal)
{
    const auto call = draw_collective(seed, num_ranks, are_equal);
    const int root  = static_cast<int>(seed % static_cast<std::uint64_t>(num_ranks));
    const int count = call->counts[static_cast<std::size_t>(own_rank)];
    for (const bool to_all : {false, true}) {
        for (const bool in_place : {false, true}) {
            current_call = std::string(to_all ? "allgather" : "gather") + (are_equal ? "" : "v") +
                           (in_place ? " in place" : "") + " of " + call->type.text();
            const round_seed data = seed + 2 * to_all + in_place; // packed bytes of the last call would be right
            const bool receives   = to_all || own_rank == root;
            typed_memory own(call->handle(), call->total), into(call->handle(), call->total),
                wanted(call->handle(), call->total);
            fill_for(own, data, own_rank);
            random junk(seed + 1);
            into.fill(junk);
            if (in_place && receives) {
                unpack_part(into, *call, call->places[static_cast<std::size_t>(own_rank)], count,
                            packed_part(own, *call, 0, count));
            }
            wanted.bytes() = into.bytes();
            for (int i = 0; receives && i < num_ranks; ++i) {
                typed_memory other(call->handle(), call->total);
                fill_for(other, data, i);
                const int part = call->counts[static_cast<std::size_t>(i)];
                unpack_part(wanted, *call, call->places[static_cast<std::size_t>(i)], part,
                            packed_part(other, *call, 0, part));
            }
            const void* const from = in_place && receives ? MPI_IN_PLACE : own.buffer();
            if (to_all && are_equal) {
                CALL(Allgather, Iallgather, Allgather_init, from, count, call->handle(), into.buffer(), count,
                     call->handle(), MPI_COMM_WORLD);
            } else if (to_all) {
                CALL(Allgatherv, Iallgatherv, Allgatherv_init, from, count, call->handle(), into.buffer(),
                     numbers(call->counts), numbers(call->places), call->handle(), MPI_COMM_WORLD);
            } else if (are_equal) {
                CALL(Gather, Igather, Gather_init, from, count, call->handle(), into.buffer(), count, call->handle(),
                     root, MPI_COMM_WORLD);
            } else {
                CALL(Gatherv, Igatherv, Gatherv_init, from, count, call->handle(), into.buffer(), numbers(call->counts),
                     numbers(call->places), call->handle(), root, MPI_COMM_WORLD);
            }
            expect_same(wanted, into, "what was gathered");
        }
    }
}

void run_scatters(round_seed seed, bool are_equal)
{
    // MPICH 4.2.1 frees the memory of a persistent scatter among more than two processes when it first ends.
    current.num_starts = is_mpich() ? 1 : current.num_starts;
    const auto call    = draw_collective(seed, num_ranks, are_equal);
    const int root     = static_cast<int>(seed % static_cast<std::uint64_t>(num_ranks));
    const auto rank    = static_cast<std::size_t>(own_rank);
    for (const bool in_place : {false, true}) {
        current_call = std::string("scatter") + (are_equal ? "" : "v") + " of " + call->type.text();
        typed_memory all(call->handle(), call->total), into(call->handle(), call->total),
            wanted(call->handle(), call->total);
        fill_for(all, seed, root);
        random junk(seed + 1);
        into.fill(junk);
        wanted.bytes()     = into.bytes();
        const bool is_kept = in_place && own_rank == root;
        if (!is_kept) {
            unpack_part(wanted, *call, 0, call->counts[rank],
                        packed_part(all, *call, call->places[rank], call->counts[rank]));
        }
        void* const target = is_kept ? MPI_IN_PLACE : into.buffer();
        if (are_equal) {
            CALL(Scatter, Iscatter, Scatter_init, all.buffer(), call->counts[0], call->handle(), target,
                 call->counts[0], call->handle(), root, MPI_COMM_WORLD);
        } else {
            CALL(Scatterv, Iscatterv, Scatterv_init, all.buffer(), numbers(call->counts), numbers(call->places),
                 call->handle(), target, call->counts[rank], call->handle(), root, MPI_COMM_WORLD);
        }
        expect_same(wanted, into, "what was scattered");
    }
    current.num_starts = 3;
}

// Every rank sends block i of its memory to rank i. With unequal blocks the count between two ranks is symmetric.
void run_alltoall(round_seed seed, int kind, bool in_place)
{
    const round_seed data     = seed + in_place;
    const char* const names[] = {"alltoall", "alltoallv", "alltoallw"};
    const auto call           = draw_collective(seed, num_ranks, true);
    current_call              = std::string(names[kind]) + (in_place ? " in place" : "") + " of " + call->type.text();
    const int count           = call->counts[0];
    std::vector<int> counts, places, offsets;
    std::vector<MPI_Datatype> types;
    for (int i = 0; i < num_ranks; ++i) {
        counts.push_back(kind == 0 ? count : (own_rank + i) % 3 == 0 ? 0 : count);
        places.push_back(i * count);
        offsets.push_back(static_cast<int>(i * count * call->extent));
        types.push_back(call->handle());
    }
    const int total = num_ranks * count;
    typed_memory own(call->handle(), total), into(call->handle(), total), wanted(call->handle(), total);
    fill_for(own, data, own_rank);
    random junk(seed + 1);
    into.fill(junk);
    if (in_place) {
        into.bytes() = own.bytes();
    }
    wanted.bytes() = into.bytes();
    for (int i = 0; i < num_ranks; ++i) {
        typed_memory other(call->handle(), total);
        fill_for(other, data, i);
        const int part = counts[static_cast<std::size_t>(i)];
        unpack_part(wanted, *call, i * count, part, packed_part(other, *call, own_rank * count, part));
    }
    const void* const from = in_place ? MPI_IN_PLACE : own.buffer();
    if (kind == 0) {
        CALL(Alltoall, Ialltoall, Alltoall_init, from, count, call->handle(), into.buffer(), count, call->handle(),
             MPI_COMM_WORLD);
    } else if (kind == 1) {
        CALL(Alltoallv, Ialltoallv, Alltoallv_init, from, numbers(counts), numbers(places), call->handle(),
             into.buffer(), numbers(counts), numbers(places), call->handle(), MPI_COMM_WORLD);
    } else {
        CALL(Alltoallw, Ialltoallw, Alltoallw_init, from, numbers(counts), numbers(offsets), types.data(),
             into.buffer(), numbers(counts), numbers(offsets), types.data(), MPI_COMM_WORLD);
    }
    expect_same(wanted, into, "what all sent");
}

void run_alltoalls(round_seed seed, int kind)
{
    run_alltoall(seed, kind, false);
    // MPI_Ialltoallv and MPI_Ialltoallw in place of Open MPI 5.0.7, and their persistent forms, give wrong bytes among
    // four processes.
    if (is_openmpi() && kind > 0 && current.how != form::blocking) {
        return;
    }
    run_alltoall(seed, kind, true);
}

// On a ring, whose neighbours are the rank before and the one after, or on a line, whose ends lack one of them.
void run_neighbors(round_seed seed, bool is_ring)
{
    MPI_Comm line;
    const int periodic = is_ring ? 1 : 0;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &num_ranks, &periodic, 0, &line);
    const auto call      = draw_collective(seed, 2, true);
    const int count      = call->counts[0];
    const int around[2]  = {(own_rank + num_ranks - 1) % num_ranks, (own_rank + 1) % num_ranks};
    const bool exists[2] = {is_ring || own_rank > 0, is_ring || own_rank < num_ranks - 1};
    const numbers counts({count, count}), places({0, count});
    const numbers offsets({0, static_cast<int>(count * call->extent)});
    const MPI_Datatype types[2] = {call->handle(), call->handle()};
    for (int kind = 0; kind < 5; ++kind) {
        const bool is_gather = kind < 2;
        current_call = std::string("neighbor call ") + std::to_string(kind) + (is_ring ? " of " : " on a line of ") +
                       call->type.text();
        typed_memory own(call->handle(), 2 * count), into(call->handle(), 2 * count), wanted(call->handle(), 2 * count);
        fill_for(own, seed, own_rank);
        random junk(seed + 1);
        into.fill(junk);
        wanted.bytes() = into.bytes();
        for (int i = 0; i < 2; ++i) {
            typed_memory other(call->handle(), 2 * count);
            fill_for(other, seed, around[i]);
            // What comes from before is what it sent to the one after it.
            if (exists[i]) {
                unpack_part(wanted, *call, i * count, count,
                            packed_part(other, *call, is_gather ? 0 : (1 - i) * count, count));
            }
        }
        switch (kind) {
        case 0:
            CALL(Neighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, own.buffer(), count, call->handle(),
                 into.buffer(), count, call->handle(), line);
            break;
        case 1:
            CALL(Neighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, own.buffer(), count,
                 call->handle(), into.buffer(), counts, places, call->handle(), line);
            break;
        case 2:
            CALL(Neighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, own.buffer(), count, call->handle(),
                 into.buffer(), count, call->handle(), line);
            break;
        case 3:
            CALL(Neighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, own.buffer(), counts, places,
                 call->handle(), into.buffer(), counts, places, call->handle(), line);
            break;
        default:
            CALL(Neighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, own.buffer(), counts, offsets, types,
                 into.buffer(), counts, offsets, types, line);
        }
        // With two ranks both neighbours of a ring are the same one, and MPI may exchange its two messages.
        if (num_ranks > 2 || is_gather || !is_ring) {
            expect_same(wanted, into, "what neighbours sent");
        }
    }
    MPI_Comm_free(&line);
}

// Between the even and the odd ranks.
void run_between_groups(round_seed seed)
{
    MPI_Comm own_group, between;
    MPI_Comm_split(MPI_COMM_WORLD, own_rank % 2, own_rank, &own_group);
    MPI_Intercomm_create(own_group, 0, MPI_COMM_WORLD, 1 - own_rank % 2, 9, &between);
    const int half = num_ranks / 2, group_rank = own_rank / 2, peer = own_rank ^ 1;
    both_ways moved(seed, own_rank, peer);
    current_call = "between groups, " + moved.sent.type.text();
    MPI_Sendrecv(moved.sent.buffer(), moved.sent.count, moved.sent.handle(), group_rank, 3, moved.room->buffer(),
                 moved.room->count, moved.room->handle(), group_rank, 3, between, MPI_STATUS_IGNORE);
    moved.check();
    // Rank 0 of the world to all odd ranks, and all of these to it.
    const auto call = draw_collective(seed, half, true);
    const int count = call->counts[0];
    typed_memory own(call->handle(), half * count), wanted(call->handle(), half * count);
    fill_for(own, seed, own_rank);
    wanted.bytes() = own.bytes();
    typed_memory source(call->handle(), half * count);
    fill_for(source, seed, 0);
    if (own_rank % 2 == 1) {
        unpack_part(wanted, *call, 0, count, packed_part(source, *call, 0, count));
    }
    CALL(Bcast, Ibcast, Bcast_init, own.buffer(), count, call->handle(),
         own_rank == 0       ? MPI_ROOT
         : own_rank % 2 == 0 ? MPI_PROC_NULL
                             : 0,
         between);
    expect_same(wanted, own, "bcast between groups");
    typed_memory into(call->handle(), half * count), expected(call->handle(), half * count);
    random junk(seed + 1);
    into.fill(junk);
    expected.bytes() = into.bytes();
    fill_for(own, seed, own_rank);
    for (int i = 0; i < half; ++i) {
        typed_memory other(call->handle(), half * count);
        fill_for(other, seed, 2 * i + 1 - own_rank % 2);
        unpack_part(expected, *call, i * count, count, packed_part(other, *call, 0, count));
    }
    CALL(Allgather, Iallgather, Allgather_init, own.buffer(), count, call->handle(), into.buffer(), count,
         call->handle(), between);
    expect_same(expected, into, "allgather between groups");
    MPI_Comm_free(&between);
    MPI_Comm_free(&own_group);
}

// A persistent exchange, with other bytes at each start.
void run_restarts(round_seed seed)
{
    current.how     = form::persistent;
    const auto call = draw_collective(seed, num_ranks, true);
    const int count = call->counts[0], total = num_ranks * count;
    current_call = "alltoall, started again, of " + call->type.text();
    typed_memory own(call->handle(), total), into(call->handle(), total), wanted(call->handle(), total);
    MPI_Request request;
    MPI_Alltoall_init(own.buffer(), count, call->handle(), into.buffer(), count, call->handle(), MPI_COMM_WORLD,
                      MPI_INFO_NULL, &request);
    for (std::uint64_t turn = 0; turn < 4; ++turn) {
        fill_for(own, seed + turn, own_rank);
        random junk(seed + turn);
        into.fill(junk);
        wanted.bytes() = into.bytes();
        for (int i = 0; i < num_ranks; ++i) {
            typed_memory other(call->handle(), total);
            fill_for(other, seed + turn, i);
            unpack_part(wanted, *call, i * count, count, packed_part(other, *call, own_rank * count, count));
        }
        MPI_Start(&request);
        end(request);
        expect_same(wanted, into, "what all sent");
        // Ended once, it changes no memory until it is started again.
        into.fill(junk);
        wanted.bytes() = into.bytes();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_same(wanted, into, "what was received before");
    }
    MPI_Request_free(&request);
}

// The program asks whether a request has ended, uses what arrived, and only then ends the request.
void run_status(round_seed seed)
{
    const auto call = draw_collective(seed, 1, true);
    const int count = call->counts[0];
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    constexpr int num_kinds = 4;
#else
    constexpr int num_kinds = 1;
#endif
    for (int kind = 0; kind < num_kinds; ++kind) {
        current_call = "status " + std::to_string(kind) + " of a bcast of " + call->type.text();
        typed_memory own(call->handle(), count), wanted(call->handle(), count), source(call->handle(), count);
        fill_for(own, seed, own_rank);
        fill_for(source, seed, 0);
        wanted.bytes() = own.bytes();
        wanted.unpack(source.packed());
        MPI_Request request;
        MPI_Ibcast(own.buffer(), count, call->handle(), 0, MPI_COMM_WORLD, &request);
        for (int has_ended = 0; has_ended == 0;) {
            [[maybe_unused]] int index = 0;
            if (kind == 0) {
                MPI_Request_get_status(request, &has_ended, MPI_STATUS_IGNORE);
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
            } else if (kind == 1) {
                MPI_Request_get_status_all(1, &request, &has_ended, MPI_STATUSES_IGNORE);
            } else if (kind == 2) {
                MPI_Request_get_status_any(1, &request, &index, &has_ended, MPI_STATUS_IGNORE);
            } else {
                MPI_Request_get_status_some(1, &request, &has_ended, &index, MPI_STATUSES_IGNORE);
#endif
            }
        }
        expect_same(wanted, own, "what arrived");
        random junk(seed + 1);
        own.fill(junk);
        wanted.bytes() = own.bytes();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_same(wanted, own, "what the program wrote");
    }
}

// Several at a time, with datatypes that are freed before they end.
void run_many(round_seed seed)
{
    constexpr int number = 5;
    const auto call      = draw_collective(seed, 1, true);
    const int count      = call->counts[0];
    current_call         = "many bcasts of " + call->type.text();
    std::vector<typed_memory> own, wanted;
    MPI_Request requests[number];
    for (int i = 0; i < number; ++i) {
        const int root = i % num_ranks;
        own.emplace_back(call->handle(), count);
        fill_for(own.back(), seed + static_cast<std::uint64_t>(i), own_rank);
        wanted.push_back(own.back());
        typed_memory source(call->handle(), count);
        fill_for(source, seed + static_cast<std::uint64_t>(i), root);
        wanted.back().unpack(source.packed());
    }
    for (int i = 0; i < number; ++i) {
        MPI_Datatype copy;
        MPI_Type_dup(call->handle(), &copy);
        MPI_Ibcast(own[static_cast<std::size_t>(i)].buffer(), count, copy, i % num_ranks, MPI_COMM_WORLD, &requests[i]);
        MPI_Type_free(&copy);
    }
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    for (std::size_t i = 0; i < number; ++i) {
        expect_same(wanted[i], own[i], "bcast " + std::to_string(i));
    }
}

} // namespace

void add_collective_calls(std::vector<call_test>& calls)
{
    struct {
        const char* name;
        void (*run)(round_seed);
    } const all[] = {
        {"bcast", run_bcast},
        {"gather", [](round_seed seed) { run_gathers(seed, true); }},
        {"gatherv", [](round_seed seed) { run_gathers(seed, false); }},
        {"scatter", [](round_seed seed) { run_scatters(seed, true); }},
        {"scatterv", [](round_seed seed) { run_scatters(seed, false); }},
        {"alltoall", [](round_seed seed) { run_alltoalls(seed, 0); }},
        {"alltoallv", [](round_seed seed) { run_alltoalls(seed, 1); }},
        {"alltoallw", [](round_seed seed) { run_alltoalls(seed, 2); }},
        {"neighbor",
         [](round_seed seed) {
             run_neighbors(seed, true);
             run_neighbors(seed, false);
         }},
        {"between-groups", run_between_groups},
    };
    struct {
        const char* name;
        form how;
        bool is_large;
    } const forms[] = {
        {"", form::blocking, false},
        {"-nonblocking", form::nonblocking, false},
        {"-persistent", form::persistent, false},
#if MPI_VERSION >= 4
        {"-large", form::blocking, true},
        {"-nonblocking-large", form::nonblocking, true},
        {"-persistent-large", form::persistent, true},
#endif
    };
    for (const auto& form : forms) {
        for (const auto& each : all) {
            calls.push_back({std::string(each.name) + form.name, [form, run = each.run](round_seed seed) {
                                 current.how      = form.how;
                                 current.is_large = form.is_large;
                                 run(seed);
                             }});
        }
    }
    calls.push_back({"restarts", run_restarts});
    calls.push_back({"status", run_status});
    calls.push_back({"many", run_many});
}

} // namespace ucxl::test

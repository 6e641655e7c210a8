// Collective calls, among neighbours, too.
#include "untouched_calls.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ucxl::test
{
namespace
{

// Blocks of several elements, one for each process: their counts, which may be 0, and where they begin. Between them
// are elements that no block has.
struct block_list {
    std::vector<int> numbers, places;
    int total = 0;

    block_list(int number, bool are_equal)
    {
        for (int i = 0; i < number; ++i) {
            numbers.push_back(are_equal ? 2 : i % 3);
            places.push_back(total);
            total += numbers.back() + (are_equal ? 0 : 1);
        }
    }
    int number(int block) const { return numbers[static_cast<std::size_t>(block)]; }
    int place(int block) const { return places[static_cast<std::size_t>(block)]; }
    int own_number() const { return number(own_rank); }
    // As MPI counts them. Not empty: Open MPI refuses lists that have no address.
    std::vector<int> counts(const element_shape& shape) const { return counted(numbers, shape); }
    std::vector<int> displacements(const element_shape& shape) const { return counted(places, shape); }
    static std::vector<int> counted(std::vector<int> list, const element_shape& shape)
    {
        std::ranges::for_each(list, [&](int& each) { each = shape.count(each); });
        list.push_back(0);
        return list;
    }
    void set_use(guarded_elements& memory, int block, use each) const
    {
        memory.set_use(place(block), number(block), each);
    }
    void expect(guarded_elements& memory, int block, std::uint64_t data, int rank, int first) const
    {
        for (int i = 0; i < number(block); ++i) {
            memory.expect(place(block) + i, packed_element(data, rank, first + i));
        }
    }
};

void run_bcast(form how)
{
    for (const bool is_absolute : {false, true}) {
        const turn now     = next_turn(is_absolute ? "bcast at MPI_BOTTOM" : "bcast", how);
        const bool is_root = own_rank == now.root();
        guarded_elements memory(is_root ? now.from : now.into, 2, is_root ? use::reads : use::updates);
        if (is_mpich() && is_root) { // it scatters the bytes and gathers them again, at the root, too
            leave_to_mpi(memory);
        }
        const arguments_in_memory arguments{{&memory}, [&](std::uint64_t data) {
                                                memory.fill(is_root ? data : now.junk(), own_rank);
                                                for (int i = 0; i < 2; ++i) {
                                                    memory.expect(i, packed_element(data, now.root(), i));
                                                }
                                            }};
        MPI_Datatype type = is_absolute ? memory.make_absolute() : memory.handle();
        CALL(how, now, arguments, Bcast, bcast, is_absolute ? MPI_BOTTOM : memory.buffer(),
             is_absolute ? 1 : memory.count(2), type, now.root(), MPI_COMM_WORLD);
        if (is_absolute) {
            MPI_Type_free(&type);
        }
    }
    const turn now = next_turn("bcast of nothing", how);
    guarded_elements memory(now.from.is_plain() ? now.into : now.from, 1, use::none);
    const arguments_in_memory arguments{{&memory}, [&](std::uint64_t data) { memory.fill(data, own_rank); }};
    CALL(how, now, arguments, Bcast, bcast, memory.buffer(), 0, memory.handle(), now.root(), MPI_COMM_WORLD);
}

// Blocks of all at the root, and one block at each process: in which direction they go.
struct at_root {
    bool has_lists, in_place, gathers;

    std::string name() const
    {
        return std::string(gathers ? "gather" : "scatter") + (has_lists ? "v" : "") + (in_place ? " in place" : "");
    }
};

void run_at_root(form how, const at_root& chosen)
{
    const turn now     = next_turn(chosen.name(), how);
    const bool is_root = own_rank == now.root(), is_kept = is_root && chosen.in_place;
    const auto& of_all   = chosen.gathers ? now.into : now.from;
    const auto& of_block = chosen.gathers ? now.from : now.into;
    const block_list blocks(num_ranks, !chosen.has_lists);
    const use by_root  = chosen.gathers ? use::updates : use::reads,
              by_block = chosen.gathers ? use::reads : use::updates;
    guarded_elements all(of_all, blocks.total, use::none), own(of_block, 3, use::none);
    for (int i = 0; i < num_ranks && is_root; ++i) {
        blocks.set_use(all, i, is_kept && i == own_rank ? use::none : by_root);
    }
    own.set_use(0, is_kept ? 0 : blocks.own_number(), by_block);
    if (is_openmpi() && is_kept && chosen.gathers) { // it copies the block of the root to where it is
        leave_to_mpi(all);
    }
    arguments_in_memory arguments{{&all, &own}, [&](std::uint64_t data) {
                                      all.fill(chosen.gathers ? now.junk() : data, own_rank);
                                      own.fill(chosen.gathers ? data : now.junk(), own_rank);
                                      for (int i = 0; i < num_ranks && is_root && chosen.gathers; ++i) {
                                          if (!is_kept || i != own_rank) {
                                              blocks.expect(all, i, data, i, 0);
                                          }
                                      }
                                      for (int i = 0; i < blocks.own_number() && !chosen.gathers && !is_kept; ++i) {
                                          own.expect(i, packed_element(data, now.root(), blocks.place(own_rank) + i));
                                      }
                                  }};
    // It also frees what a persistent scatter needs when that first ends.
    arguments.is_read_early = is_mpich() && !chosen.has_lists;
    // Where they do not count, nothing may be looked at.
    const auto counts = blocks.counts(of_all), displacements = blocks.displacements(of_all);
    const int* const counts_at_root = is_root ? counts.data() : nowhere<int>();
    const int* const places_at_root = is_root ? displacements.data() : nowhere<int>();
    const int count_at_root         = is_root ? counts[0] : -1;
    const MPI_Datatype type_at_root = is_root ? all.handle() : MPI_DATATYPE_NULL;
    void* const buffer              = is_kept ? MPI_IN_PLACE : own.buffer();
    const int count                 = is_kept ? -1 : own.count(blocks.own_number());
    const MPI_Datatype type         = is_kept ? MPI_DATATYPE_NULL : own.handle();
    if (chosen.gathers && chosen.has_lists) {
        CALL(how, now, arguments, Gatherv, gatherv, buffer, count, type, all.buffer(), counts_at_root, places_at_root,
             type_at_root, now.root(), MPI_COMM_WORLD);
    } else if (chosen.gathers) {
        CALL(how, now, arguments, Gather, gather, buffer, count, type, all.buffer(), count_at_root, type_at_root,
             now.root(), MPI_COMM_WORLD);
    } else if (chosen.has_lists) {
        CALL(how, now, arguments, Scatterv, scatterv, all.buffer(), counts_at_root, places_at_root, type_at_root,
             buffer, count, type, now.root(), MPI_COMM_WORLD);
    } else {
        CALL(how, now, arguments, Scatter, scatter, all.buffer(), count_at_root, type_at_root, buffer, count, type,
             now.root(), MPI_COMM_WORLD);
    }
}

void run_allgather(form how, bool has_lists, bool in_place)
{
    const turn now =
        next_turn(std::string(has_lists ? "allgatherv" : "allgather") + (in_place ? " in place" : ""), how);
    const auto& of_all = in_place && now.into.is_plain() ? now.from : now.into;
    const block_list blocks(num_ranks, !has_lists);
    guarded_elements all(of_all, blocks.total, use::none), own(now.from, 3, use::none);
    for (int i = 0; i < num_ranks; ++i) {
        blocks.set_use(all, i, in_place && i == own_rank ? use::reads : use::updates);
    }
    own.set_use(0, in_place ? 0 : blocks.own_number(), use::reads);
    const arguments_in_memory arguments{{&all, &own}, [&](std::uint64_t data) {
                                            all.fill(in_place ? data : now.junk(), own_rank);
                                            own.fill(data, own_rank);
                                            for (int i = 0; i < num_ranks; ++i) {
                                                blocks.expect(all, i, data, i, in_place ? blocks.place(i) : 0);
                                            }
                                        }};
    const auto counts = blocks.counts(of_all), displacements = blocks.displacements(of_all);
    const void* const buffer = in_place ? MPI_IN_PLACE : own.buffer();
    const int count          = in_place ? -1 : own.count(blocks.own_number());
    const MPI_Datatype type  = in_place ? MPI_DATATYPE_NULL : own.handle();
    if (has_lists) {
        CALL(how, now, arguments, Allgatherv, allgatherv, buffer, count, type, all.buffer(), counts.data(),
             displacements.data(), all.handle(), MPI_COMM_WORLD);
    } else {
        CALL(how, now, arguments, Allgather, allgather, buffer, count, type, all.buffer(), counts[0], all.handle(),
             MPI_COMM_WORLD);
    }
}

enum class lists : unsigned char { none, counts, types };

// The lists of a side whose blocks have other numbers of elements.
struct side_of_lists {
    std::vector<int> counts, displacements, byte_displacements;
    std::vector<MPI_Aint> long_displacements;
    std::vector<MPI_Datatype> types;

    side_of_lists(const block_list& blocks, const element_shape& shape)
        : counts(blocks.counts(shape)), displacements(blocks.displacements(shape)), types(counts.size(), shape.handle())
    {
        for (const int each : blocks.places) {
            byte_displacements.push_back(each * static_cast<int>(shape.num_pages() * page));
        }
        byte_displacements.push_back(0);
        long_displacements.assign(byte_displacements.begin(), byte_displacements.end());
    }
};

// How many elements two ranks send each other.
block_list symmetric_blocks(lists kind)
{
    block_list blocks(num_ranks, kind == lists::none);
    blocks.total = 0;
    for (std::size_t i = 0; i < blocks.numbers.size(); ++i) {
        blocks.numbers[i] = kind == lists::none ? 2 : (own_rank + static_cast<int>(i)) % 3;
        blocks.places[i]  = blocks.total;
        blocks.total += kind == lists::none ? 2 : 3;
    }
    return blocks;
}

void run_alltoall(form how, lists kind, bool in_place)
{
    const char* const names[] = {"alltoall", "alltoallv", "alltoallw"};
    const turn now = next_turn(std::string(names[static_cast<int>(kind)]) + (in_place ? " in place" : ""), how);
    // In place the nonblocking and persistent forms with lists of Open MPI give wrong bytes among four processes.
    if (is_openmpi() && in_place && kind != lists::none && how != form::blocking) {
        return;
    }
    const auto& of_all      = in_place && now.into.is_plain() ? now.from : now.into;
    const block_list blocks = symmetric_blocks(kind);
    guarded_elements sent(now.from, blocks.total, use::none), all(of_all, blocks.total, use::none);
    for (int i = 0; i < num_ranks; ++i) {
        blocks.set_use(sent, i, in_place ? use::none : use::reads);
        blocks.set_use(all, i, use::updates);
    }
    const arguments_in_memory arguments{{&sent, &all}, [&](std::uint64_t data) {
                                            sent.fill(data, own_rank);
                                            all.fill(in_place ? data : now.junk(), own_rank);
                                            for (int i = 0; i < num_ranks; ++i) {
                                                blocks.expect(all, i, data, i, blocks.place(own_rank));
                                            }
                                        }};
    const side_of_lists from(blocks, now.from), into(blocks, of_all);
    const void* const buffer = in_place ? MPI_IN_PLACE : sent.buffer();
    const MPI_Datatype type  = in_place ? MPI_DATATYPE_NULL : sent.handle();
    const int* const counts  = in_place ? nowhere<int>() : from.counts.data();
    if (kind == lists::none) {
        CALL(how, now, arguments, Alltoall, alltoall, buffer, in_place ? -1 : from.counts[0], type, all.buffer(),
             into.counts[0], all.handle(), MPI_COMM_WORLD);
    } else if (kind == lists::counts) {
        CALL(how, now, arguments, Alltoallv, alltoallv, buffer, counts,
             in_place ? nowhere<int>() : from.displacements.data(), type, all.buffer(), into.counts.data(),
             into.displacements.data(), all.handle(), MPI_COMM_WORLD);
    } else {
        CALL(how, now, arguments, Alltoallw, alltoallw, buffer, counts,
             in_place ? nowhere<int>() : from.byte_displacements.data(),
             in_place ? nowhere<MPI_Datatype>() : from.types.data(), all.buffer(), into.counts.data(),
             into.byte_displacements.data(), into.types.data(), MPI_COMM_WORLD);
    }
}

// Who sends to this rank and gets something from it, by block; MPI_PROC_NULL: nobody.
struct neighborhood {
    std::string name;
    MPI_Comm comm;
    std::vector<int> sources, destinations;
    std::vector<int> block_of_source; // the block that a source sends here
};

// A line has no neighbours beyond its ends. A grid of one row has none above and below.
neighborhood make_grid()
{
    const int sizes[] = {num_ranks, 1}, periods[] = {0, 0};
    const int before = own_rank > 0 ? own_rank - 1 : MPI_PROC_NULL;
    const int after  = own_rank < num_ranks - 1 ? own_rank + 1 : MPI_PROC_NULL;
    const std::vector<int> both{before, after, MPI_PROC_NULL, MPI_PROC_NULL};
    neighborhood made{" on a grid", MPI_COMM_NULL, both, both, {1, 0, 0, 0}};
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 0, &made.comm);
    return made;
}

// Each sends to the next one; the last one sends nothing, and the first one gets nothing.
neighborhood make_chain()
{
    neighborhood made{" in a chain", MPI_COMM_NULL, {}, {}, {0}};
    if (own_rank > 0) {
        made.sources.push_back(own_rank - 1);
    }
    if (own_rank < num_ranks - 1) {
        made.destinations.push_back(own_rank + 1);
    }
    const int one = 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(made.sources.size()), made.sources.data(), &one,
                                   static_cast<int>(made.destinations.size()), made.destinations.data(), &one,
                                   MPI_INFO_NULL, 0, &made.comm);
    return made;
}

void run_neighbors(form how, neighborhood& around, bool is_gather, lists kind)
{
    const char* const endings[] = {"", "v", "w"};
    const turn now              = next_turn(std::string(is_gather ? "neighbor_allgather" : "neighbor_alltoall") +
                                                endings[static_cast<int>(kind)] + around.name,
                                            how);
    const auto sources          = static_cast<int>(around.sources.size());
    const auto destinations     = static_cast<int>(around.destinations.size());
    const auto is_there         = [](int rank) { return rank != MPI_PROC_NULL; };
    block_list of_sources(sources, true), of_destinations(destinations, true);
    for (int& each : of_sources.places) {
        each += kind == lists::none ? 0 : 1; // not where they would be without lists
    }
    of_sources.total += 1;
    guarded_elements sent(now.from, std::max(2, of_destinations.total), use::none);
    guarded_elements room(now.into, of_sources.total, use::none);
    for (int i = 0; i < destinations; ++i) {
        if (is_there(around.destinations[static_cast<std::size_t>(i)])) {
            sent.set_use(is_gather ? 0 : of_destinations.place(i), 2, use::reads);
        }
    }
    for (int i = 0; i < sources; ++i) {
        const bool has_one = is_there(around.sources[static_cast<std::size_t>(i)]);
        of_sources.set_use(room, i, has_one ? use::updates : use::none);
    }
    const arguments_in_memory arguments{
        {&sent, &room}, [&](std::uint64_t data) {
            sent.fill(data, own_rank);
            room.fill(now.junk(), own_rank);
            for (int i = 0; i < sources; ++i) {
                const int source = around.sources[static_cast<std::size_t>(i)];
                if (is_there(source)) {
                    of_sources.expect(room, i, data, source,
                                      is_gather ? 0 : 2 * around.block_of_source[static_cast<std::size_t>(i)]);
                }
            }
        }};
    const side_of_lists from(of_destinations, now.from), into(of_sources, now.into);
    const int count = sent.count(2), room_count = room.count(2);
    if (is_gather && kind == lists::none) {
        CALL(how, now, arguments, Neighbor_allgather, neighbor_allgather, sent.buffer(), count, sent.handle(),
             room.buffer(), room_count, room.handle(), around.comm);
    } else if (is_gather) {
        CALL(how, now, arguments, Neighbor_allgatherv, neighbor_allgatherv, sent.buffer(), count, sent.handle(),
             room.buffer(), into.counts.data(), into.displacements.data(), room.handle(), around.comm);
    } else if (kind == lists::none) {
        CALL(how, now, arguments, Neighbor_alltoall, neighbor_alltoall, sent.buffer(), count, sent.handle(),
             room.buffer(), room_count, room.handle(), around.comm);
    } else if (kind == lists::counts) {
        CALL(how, now, arguments, Neighbor_alltoallv, neighbor_alltoallv, sent.buffer(), from.counts.data(),
             from.displacements.data(), sent.handle(), room.buffer(), into.counts.data(), into.displacements.data(),
             room.handle(), around.comm);
    } else {
        CALL(how, now, arguments, Neighbor_alltoallw, neighbor_alltoallw, sent.buffer(), from.counts.data(),
             from.long_displacements.data(), from.types.data(), room.buffer(), into.counts.data(),
             into.long_displacements.data(), into.types.data(), around.comm);
    }
}

// Between the even and the odd ranks. Rank 0 gives or gets, and the other even ranks take no part.
void run_between_groups(form how)
{
    MPI_Comm own_group, between;
    MPI_Comm_split(MPI_COMM_WORLD, own_rank % 2, own_rank, &own_group);
    MPI_Intercomm_create(own_group, 0, MPI_COMM_WORLD, 1 - own_rank % 2, 9, &between);
    const int half = num_ranks / 2, group_rank = own_rank / 2;
    const bool is_root = own_rank == 0, takes_part = own_rank % 2 == 1;
    const int root = is_root ? MPI_ROOT : takes_part ? 0 : MPI_PROC_NULL;
    {
        const turn now = next_turn("bcast between groups", how);
        guarded_elements memory(is_root ? now.from : now.into, 2,
                                is_root      ? use::reads
                                : takes_part ? use::updates
                                             : use::none);
        const arguments_in_memory arguments{{&memory}, [&](std::uint64_t data) {
                                                memory.fill(is_root ? data : now.junk(), own_rank);
                                                for (int i = 0; i < 2 && takes_part; ++i) {
                                                    memory.expect(i, packed_element(data, 0, i));
                                                }
                                            }};
        CALL(how, now, arguments, Bcast, bcast, memory.buffer(), memory.count(2), memory.handle(), root, between);
    }
    for (const bool gathers : {true, false}) {
        // MPICH brings wrong bytes, and ends no more, where the group of the root has another process.
        if (is_mpich() && num_ranks > 2) {
            break;
        }
        const turn now       = next_turn(gathers ? "gather between groups" : "scatter between groups", how);
        const auto& of_all   = gathers ? now.into : now.from;
        const auto& of_block = gathers ? now.from : now.into;
        const use by_root = gathers ? use::updates : use::reads, by_block = gathers ? use::reads : use::updates;
        guarded_elements all(of_all, 2 * half, is_root ? by_root : use::none);
        guarded_elements own(of_block, 2, takes_part ? by_block : use::none);
        arguments_in_memory arguments{{&all, &own}, [&](std::uint64_t data) {
                                          all.fill(gathers ? now.junk() : data, own_rank);
                                          own.fill(gathers ? data : now.junk(), own_rank);
                                          for (int i = 0; i < 2 * half && is_root && gathers; ++i) {
                                              all.expect(i, packed_element(data, 2 * (i / 2) + 1, i % 2));
                                          }
                                          for (int i = 0; i < 2 && takes_part && !gathers; ++i) {
                                              own.expect(i, packed_element(data, 0, 2 * group_rank + i));
                                          }
                                      }};
        arguments.is_read_early = is_mpich();
        if (gathers) {
            CALL(how, now, arguments, Gather, gather, own.buffer(), own.count(2), own.handle(), all.buffer(),
                 all.count(2), all.handle(), root, between);
        } else {
            CALL(how, now, arguments, Scatter, scatter, all.buffer(), all.count(2), all.handle(), own.buffer(),
                 own.count(2), own.handle(), root, between);
        }
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&own_group);
}

void run_collectives(form how)
{
    run_bcast(how);
    for (const bool has_lists : {false, true}) {
        for (const bool in_place : {false, true}) {
            run_at_root(how, {has_lists, in_place, true});
            run_at_root(how, {has_lists, in_place, false});
            run_allgather(how, has_lists, in_place);
        }
    }
    for (const lists kind : {lists::none, lists::counts, lists::types}) {
        for (const bool in_place : {false, true}) {
            run_alltoall(how, kind, in_place);
        }
    }
    run_between_groups(how);
}

void run_neighbors_of(neighborhood around)
{
    for (const form how : forms) {
        run_neighbors(how, around, true, lists::none);
        run_neighbors(how, around, true, lists::counts);
        for (const lists kind : {lists::none, lists::counts, lists::types}) {
            run_neighbors(how, around, false, kind);
        }
    }
    MPI_Comm_free(&around.comm);
}

} // namespace

void add_collectives(std::vector<named_call>& calls)
{
    calls.push_back({"collective", [] {
                         for (const form how : forms) {
                             run_collectives(how);
                         }
                     }});
    calls.push_back({"neighbor", [] {
                         run_neighbors_of(make_grid());
                         run_neighbors_of(make_chain());
                     }});
}

} // namespace ucxl::test

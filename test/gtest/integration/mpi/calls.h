// What the tests of all calls share: random elements, and what should arrive.
#pragma once

#include "mpi_program.h"
#include "random_type.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ucxl::test
{

using bytes      = std::vector<unsigned char>;
using round_seed = std::uint64_t;

// A datatype, a number of elements, and the memory that one rank has for them. Each rank makes those of the others, too
// to know what it should get.
struct elements {
    random numbers;
    random_type type;
    int count;
    typed_memory memory;

    explicit elements(std::uint64_t seed, int max_count = 4)
        : numbers(seed), type(numbers), count(static_cast<int>(numbers.between(1, max_count))),
          memory(type.handle(), count)
    {
        memory.fill(numbers);
    }
    // Room for at least so many bytes.
    elements(std::uint64_t seed, std::size_t length) : elements(seed, 1)
    {
        count  = static_cast<int>((length + static_cast<std::size_t>(type.size()) - 1) /
                                  static_cast<std::size_t>(type.size()));
        memory = typed_memory(type.handle(), count);
        memory.fill(numbers);
    }

    void* buffer() { return memory.buffer(); }
    MPI_Datatype handle() const { return type.handle(); }
    std::size_t length() const { return static_cast<std::size_t>(count) * static_cast<std::size_t>(type.size()); }
};

// Whether the bytes of an element have gaps between them.
bool has_gaps(const elements& drawn);
// Receives of long random datatypes name bytes twice if their elements overlap. Only those that do not are received.
bool is_unique(elements& room);
// Room for a message, of another datatype than the message in most cases.
std::unique_ptr<elements> room_for(const elements& sent, std::uint64_t seed);
void expect_arrived(elements& room, const bytes& before, const bytes& message);
void expect_status(const MPI_Status& status, const elements& room, std::size_t length, int source, int tag);

// A message to a peer, and the one that comes from it.
struct both_ways {
    elements sent;     // by this rank
    elements expected; // by the peer
    std::unique_ptr<elements> room;
    bytes before, message;

    both_ways(round_seed seed, int rank, int peer)
        : sent(derive_seed(seed, static_cast<std::uint64_t>(rank))),
          expected(derive_seed(seed, static_cast<std::uint64_t>(peer))), room(room_for(expected, seed)),
          before(room->memory.bytes()), message(expected.memory.packed())
    {
    }
    void check() { expect_arrived(*room, before, message); }
};

// All ranks use the same random datatype with counts of their own.
struct collective {
    random numbers;
    random_type type;
    MPI_Aint lb = 0, extent = 0;
    std::vector<int> counts, places; // by rank; places in extents

    explicit collective(round_seed seed, int number, bool are_equal) : numbers(seed), type(numbers)
    {
        int place = 0;
        MPI_Type_get_extent(type.handle(), &lb, &extent);
        for (int i = 0; i < number; ++i) {
            counts.push_back(are_equal && i > 0 ? counts[0] : static_cast<int>(numbers.between(are_equal ? 1 : 0, 2)));
            place += are_equal ? 0 : static_cast<int>(numbers.below(2));
            places.push_back(place);
            place += counts.back();
        }
        total = place + 1;
    }

    int total = 0; // elements that memory for all blocks has
    MPI_Datatype handle() const { return type.handle(); }
    int size() const { return type.size(); }
};

std::unique_ptr<collective> draw_collective(round_seed seed, int number, bool are_equal);
void fill_for(typed_memory& memory, round_seed seed, int rank);
void expect_same(typed_memory& wanted, typed_memory& got, const std::string& text);
void* at(typed_memory& memory, const collective& call, int place);
// The packed bytes of some elements, and the other way round.
bytes packed_part(typed_memory& memory, const collective& call, int place, int count);
void unpack_part(typed_memory& memory, const collective& call, int place, int count, const bytes& packed);

struct call_test {
    std::string name;
    std::function<void(round_seed)> run;
    bool only_by_name = false;
};

void add_message_calls(std::vector<call_test>& calls);
void add_collective_calls(std::vector<call_test>& calls);
void add_one_sided_calls(std::vector<call_test>& calls);
void add_partitioned_calls(std::vector<call_test>& calls);
// At the end of the list, because a call's place in it makes the numbers that it draws: MPICH 4.2.1 itself ends some
// one-sided operations by an assertion, and more calls before them would be other operations.
void add_later_calls(std::vector<call_test>& calls);

} // namespace ucxl::test

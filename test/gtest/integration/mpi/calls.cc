#include "calls.h"

#include <algorithm>
#include <cstdio>

namespace ucxl::test
{

bool has_gaps(const elements& drawn)
{
    MPI_Aint true_lb = 0, true_extent = 0;
    MPI_Type_get_true_extent(drawn.handle(), &true_lb, &true_extent);
    return true_extent > drawn.type.size();
}

bool is_unique(elements& room)
{
    typed_memory marks(room.handle(), room.count);
    std::ranges::fill(marks.bytes(), static_cast<unsigned char>(0));
    marks.unpack(bytes(room.length(), 1));
    return std::ranges::count(marks.bytes(), 1) == static_cast<std::ptrdiff_t>(room.length());
}

std::unique_ptr<elements> room_for(const elements& sent, std::uint64_t seed)
{
    for (std::uint64_t i = 0;; ++i) {
        auto room = std::make_unique<elements>(derive_seed(seed, 100 + i), sent.length());
        if (is_unique(*room)) {
            return room;
        }
    }
}

void expect_arrived(elements& room, const bytes& before, const bytes& message)
{
    typed_memory wanted(room.handle(), room.count);
    wanted.bytes() = before;
    wanted.unpack_some(message.data(), message.size());
    expect(wanted.bytes() == room.memory.bytes(),
           "wrong bytes in " + std::to_string(room.count) + " of " + room.type.text());
}

void expect_status(const MPI_Status& status, const elements& room, std::size_t length, int source, int tag)
{
    int count = 0, basic = 0;
    MPI_Count large = 0;
    MPI_Get_count(&status, room.handle(), &count);
    const auto size    = static_cast<std::size_t>(room.type.size());
    const int expected = length % size == 0 ? static_cast<int>(length / size) : MPI_UNDEFINED;
    expect(count == expected, "count " + std::to_string(count) + ", not " + std::to_string(expected));
    expect(status.MPI_SOURCE == source && status.MPI_TAG == tag, "source or tag");
    // MPICH 4.2.1 aborts where it meets a distributed array on its way to the elements of a structure.
    if (is_mpich() && room.type.text().find("darray") != std::string::npos) {
        return;
    }
    MPI_Get_elements(&status, room.handle(), &basic);
    MPI_Get_elements_x(&status, room.handle(), &large);
    expect(basic == static_cast<int>(length / basic_size) && large == basic,
           "elements " + std::to_string(basic) + ", not " + std::to_string(length / basic_size));
}

void fill_for(typed_memory& memory, round_seed seed, int rank)
{
    random numbers(derive_seed(seed, 1000 + static_cast<std::uint64_t>(rank)));
    memory.fill(numbers);
}

void expect_same(typed_memory& wanted, typed_memory& got, const std::string& text)
{
    expect(wanted.bytes() == got.bytes(), "wrong bytes in " + text);
}

void* at(typed_memory& memory, const collective& call, int place)
{
    return static_cast<char*>(memory.buffer()) + place * call.extent;
}

bytes packed_part(typed_memory& memory, const collective& call, int place, int count)
{
    bytes packed(static_cast<std::size_t>(count * call.size()));
    int position = 0;
    if (count == 0) {
        return packed;
    }
    PMPI_Pack(at(memory, call, place), count, call.handle(), packed.data(), static_cast<int>(packed.size()), &position,
              MPI_COMM_SELF);
    return packed;
}

void unpack_part(typed_memory& memory, const collective& call, int place, int count, const bytes& packed)
{
    int position = 0;
    if (count == 0) {
        return;
    }
    PMPI_Unpack(packed.data(), static_cast<int>(packed.size()), &position, at(memory, call, place), count,
                call.handle(), MPI_COMM_SELF);
}

namespace
{

// Memory of the elements whose bytes could be named twice by a longer array is not used.
bool is_usable(const collective& call)
{
    typed_memory marks(call.handle(), call.total);
    std::ranges::fill(marks.bytes(), static_cast<unsigned char>(0));
    marks.unpack(bytes(static_cast<std::size_t>(call.total * call.size()), 1));
    return std::ranges::count(marks.bytes(), 1) == call.total * call.size();
}

} // namespace

std::unique_ptr<collective> draw_collective(round_seed seed, int number, bool are_equal)
{
    for (std::uint64_t i = 0;; ++i) {
        auto call = std::make_unique<collective>(derive_seed(seed, 200 + i), number, are_equal);
        if (is_usable(*call)) {
            return call;
        }
    }
}

} // namespace ucxl::test

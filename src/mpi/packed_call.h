// A collective call with packed bytes in the places of its sides: packs, calls MPI, and unpacks what arrived.
//
//     return call_packed(PMPI_Alltoall, sent, received, std::tuple(comm), [&](auto& from, auto& into) {
//         from.take(number, direction::send);
//         into.take(number, direction::receive);
//     });
#pragma once

#include "collective_sides.h"

#include <tuple>

namespace ucxl::mpi
{

// `take` chooses the sides that are packed. `tail` are the arguments after the sides.
template <typename Next, typename Sent, typename Received, typename Tail, typename Take>
int call_packed(Next* next, const Sent& sent, const Received& received, const Tail& tail, Take take)
{
    if (!sent.is_taken() && !received.is_taken()) [[likely]] {
        return std::apply(next, std::tuple_cat(sent.arguments(), received.arguments(), tail));
    }
    packed<Sent> from(sent);
    packed<Received> into(received);
    take(from, into);
    from.pack();
    into.pack();
    const int result = std::apply(next, std::tuple_cat(from.arguments(), into.arguments(), tail));
    if (result == MPI_SUCCESS) {
        from.unpack();
        into.unpack();
    }
    return result;
}

} // namespace ucxl::mpi

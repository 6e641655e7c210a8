// Whether it pays to find out what a datatype is.
//
// Many libraries make a datatype for each message and free it (BLACS, FFTs). Finding out what one is takes as long as
// packing some 30 KB, so it is not done before the datatype has moved a multiple of that. Until then only a number is
// kept of it, in a table of fixed size that its handle chooses: nothing has to be removed when it is freed.
//
// Thread safe. Two datatypes that get the same place forget each other, which costs time only.
#pragma once

#include "mpi_functions.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ucxl::mpi
{

// A persistent request is made to be started again and again, and its starts do not name the datatype: it counts as so
// many messages.
constexpr MPI_Count starts_of_persistent = 64;

class type_uses
{
public:
    // A new datatype has this handle.
    void begin(MPI_Datatype type) noexcept
    {
        place& own = place_of(number_of(type));
        own.key.store(number_of(type), std::memory_order_relaxed);
        own.moved.store(0, std::memory_order_relaxed);
        own.size.store(unknown_size, std::memory_order_relaxed);
    }
    bool has_begun(MPI_Datatype type) noexcept
    {
        return place_of(number_of(type)).key.load(std::memory_order_relaxed) == number_of(type);
    }
    // Counts uses of it, and returns whether it shall be known from now on. Never at the first use of a datatype whose
    // beginning was not seen: MPI has to refuse it if it was not committed.
    bool note(MPI_Datatype type, MPI_Count count, unsigned uses) noexcept
    {
        place& own = place_of(number_of(type));
        if (own.key.load(std::memory_order_relaxed) != number_of(type)) [[unlikely]] {
            begin(type);
            return false;
        }
        // Asked once: with Open MPI the answer takes half as long as all the rest of this.
        MPI_Count size = own.size.load(std::memory_order_relaxed);
        if (size == unknown_size) {
            if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS) {
                return false;
            }
            own.size.store(size, std::memory_order_relaxed);
        }
        if (count <= 0 || size <= 0) [[unlikely]] {
            return false;
        }
        // Saturates: no message is longer than what is enough several times.
        const auto enough = _enough.load(std::memory_order_relaxed);
        const auto moved  = own.moved.load(std::memory_order_relaxed) +
                           uses * (bytes_of_message + (size > enough_bytes || count > enough_bytes
                                                           ? std::uint64_t{enough_bytes}
                                                           : static_cast<std::uint64_t>(size * count)));
        own.moved.store(moved, std::memory_order_relaxed);
        return moved >= enough && pays(type, moved);
    }
    // Every datatype is wanted at its first use.
    void want_all() { _enough.store(0, std::memory_order_relaxed); }

private:
    static constexpr std::size_t number = 16384;
    // Finding out takes some 4 us, and 15 ns for each number that MPI lists of the datatype. A message by a layout
    // saves some 0.1 us and 0.1 ns for each byte, so by then it would have saved several times as much.
    static constexpr std::uint64_t bytes_of_message = 1024, bytes_of_number = 128;
    static constexpr MPI_Count enough_bytes = 256 * 1024;
    static constexpr MPI_Count unknown_size = -1;

    struct place {
        std::atomic<std::uintptr_t> key{0};
        std::atomic<std::uint64_t> moved{0}; // bytes, and something for each message
        std::atomic<MPI_Count> size{unknown_size};
    };

    place& place_of(std::uintptr_t key) { return _places[((key * 0x9e3779b97f4a7c15ULL) >> 40) % number]; }

    bool pays(MPI_Datatype type, std::uint64_t moved) const noexcept;

    std::array<place, number> _places;
    std::atomic<std::uint64_t> _enough{enough_bytes};
};

extern type_uses uses_of_types;

} // namespace ucxl::mpi

// Whether it pays to find out what a datatype is.
//
// Many libraries make a datatype for each message and free it (BLACS, FFTs). Finding out what one is takes as long as
// packing some 30 KB, so it is not done before the datatype has moved a multiple of that. Until then only a number is
// kept of it, in a table of fixed size that its handle chooses.
//
// Thread safe. Two datatypes that get the same place forget each other, which costs time only.
#pragma once

#include "mpi_functions.h"

#include <algorithm>
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
    // A new datatype has this handle, and is committed.
    void begin(MPI_Datatype type) noexcept { begin(type, place_of(number_of(type)), size_of(type)); }
    bool has_begun(MPI_Datatype type) noexcept
    {
        return place_of(number_of(type)).key.load(std::memory_order_relaxed) == number_of(type);
    }
    // It is known from now on, or ends.
    void end(MPI_Datatype type) noexcept { place_of(number_of(type)).key.store(0, std::memory_order_relaxed); }
    // Counts uses of one that nothing is known of, and returns whether that is all. If not, it may be wanted. Calls
    // nothing and needs few registers: this is a part of every call of the program.
    template <typename Count>
    UCXL_MPI_FAST bool note(MPI_Datatype type, Count count, unsigned uses) noexcept
    {
        place& own = place_of(number_of(type));
        if (own.key.load(std::memory_order_relaxed) != number_of(type)) [[unlikely]] {
            return false;
        }
        const auto left = own.left.load(std::memory_order_relaxed) -
                          static_cast<std::int64_t>(uses * moved_by(own.size.load(std::memory_order_relaxed), count));
        own.left.store(left, std::memory_order_relaxed);
        return left > 0;
    }
    // Whether it shall be known from now on. Never at the first use of a datatype whose beginning was not seen: MPI has
    // to refuse it if it was not committed.
    bool is_wanted(MPI_Datatype type, MPI_Count count) noexcept;
    // Every datatype is wanted at its first use.
    void want_all() { _enough.store(0, std::memory_order_relaxed); }

private:
    static constexpr std::size_t number = 16384;
    // Finding out takes some 4 us, and 15 ns for each number that MPI lists of the datatype. A message by a layout
    // saves some 0.1 us and 0.1 ns for each byte, so by then it would have saved several times as much.
    static constexpr std::uint64_t bytes_of_message = 1024;
    static constexpr std::int64_t bytes_of_number   = 128;
    static constexpr MPI_Count enough_bytes         = 256 * 1024;
    // Much more has been moved than by any datatype. Its size is to be asked for when it is used for the second time.
    static constexpr std::int64_t not_asked = -(std::int64_t{1} << 62);

    struct alignas(32) place { // in one line of the cache
        std::atomic<std::uintptr_t> key{0};
        std::atomic<std::int64_t> left{0};  // until it has moved enough: bytes, and something for each message
        std::atomic<std::uint64_t> size{0}; // at most what is enough
    };

    place& place_of(std::uintptr_t key) { return _places[((key * 0x9e3779b97f4a7c15ULL) >> 40) % number]; }

    // A negative count is a large one, so that is_wanted() sees it.
    static std::uint64_t moved_by(std::uint64_t size, int count)
    {
        return bytes_of_message + size * static_cast<unsigned>(count);
    }
    // No message is longer than what is enough several times.
    static std::uint64_t moved_by(std::uint64_t size, MPI_Count count)
    {
        return bytes_of_message + size * std::min(static_cast<std::uint64_t>(count), std::uint64_t{enough_bytes});
    }
    void begin(MPI_Datatype type, place& own, std::uint64_t size) noexcept
    {
        own.key.store(number_of(type), std::memory_order_relaxed);
        own.left.store(_enough.load(std::memory_order_relaxed), std::memory_order_relaxed);
        own.size.store(size, std::memory_order_relaxed);
    }
    // 0 if MPI does not say.
    static std::uint64_t size_of(MPI_Datatype type) noexcept
    {
        MPI_Count size = 0;
        return PMPI_Type_size_x(type, &size) == MPI_SUCCESS
                   ? static_cast<std::uint64_t>(std::clamp(size, MPI_Count{0}, enough_bytes))
                   : 0;
    }
    bool pays(MPI_Datatype type, std::int64_t moved) const noexcept;

    std::array<place, number> _places;
    std::atomic<std::int64_t> _enough{enough_bytes};
};

extern type_uses uses_of_types;

} // namespace ucxl::mpi

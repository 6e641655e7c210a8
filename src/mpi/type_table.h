// Finds what is known of a datatype by its handle. Derived datatypes that were worth finding out about are in the table
// (type_uses.h), and no others. A handle is removed when MPI deletes the attribute of its datatype.
#pragma once

#include "handle_table.h"
#include "implementation.h"
#include "known_type.h"
#include "one_pass.h"
#include "report.h"
#include "type_uses.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace ucxl::mpi
{

extern handle_table<MPI_Datatype, known_type> known_types;

// A handle_range that may change while others look.
struct changing_range {
    std::atomic<std::uintptr_t> first{0}, last_distance{UINTPTR_MAX};

    bool has(std::uintptr_t handle) const
    {
        return handle - first.load(std::memory_order_relaxed) <= last_distance.load(std::memory_order_relaxed);
    }
    void set(const handle_range& to)
    {
        first.store(to.first, std::memory_order_relaxed);
        last_distance.store(to.last - to.first, std::memory_order_relaxed);
    }
};

// Handles of MPI's own datatypes, and of none: told from derived ones without a look into a table. All handles while
// the library is not active.
class own_types
{
public:
    static bool has(MPI_Datatype type) { return _ranges[0].has(number_of(type)) || _ranges[1].has(number_of(type)); }
    static void set(const handle_ranges& own)
    {
        for (std::size_t i = 0; i < own.size(); ++i) {
            _ranges[i].set(own[i]);
        }
    }
    static void set_all()
    {
        constexpr handle_range all{0, UINTPTR_MAX};
        set({all, all});
    }

private:
    static constinit inline std::array<changing_range, 2> _ranges{};
};

// Null for datatypes that MPI shall move, and for those that nothing is known of yet. Any handle may be asked for, also
// one that MPI would not look at.
inline known_type* find_known(MPI_Datatype type)
{
    return own_types::has(type) ? nullptr : known_types.find(type);
}

// Bytes of an element if the datatype is MPI's own, and its elements follow each other without gaps. Any handle may be
// asked for, also one that MPI would not look at.
std::optional<MPI_Count> size_of_number(MPI_Datatype type) noexcept;

// A program committed this datatype.
inline void note_commit(MPI_Datatype type)
{
    if (!own_types::has(type)) {
        uses_of_types.begin(type);
    }
}

// A program frees this datatype.
inline void note_free(MPI_Datatype type)
{
    if (!own_types::has(type)) {
        uses_of_types.end(type);
    }
}

// Finds out what a datatype is. Returns what is known of it from now on. The library defines it, which knows what is
// attached to datatypes.
known_type* learn(MPI_Datatype type) noexcept;

// The same for a datatype that a call uses, which may make it worth knowing. MPI has to know the handle. A datatype of
// MPI itself only for a long message.
known_type* look_at(MPI_Datatype type, MPI_Count count) noexcept;

// Whether nothing is known of a datatype that a call uses, and need not be. Counts the use.
template <typename Count>
UCXL_MPI_FAST bool is_unknown(MPI_Datatype type, Count count, unsigned uses)
{
    if (!uses_of_types.note(type, count, uses)) [[unlikely]] {
        return false;
    }
    report::note_unknown(uses);
    return true;
}

// Whether a call leaves this datatype to MPI without a further look. It calls nothing, so calls that go to MPI become
// jumps.
template <typename Count>
UCXL_MPI_FAST bool is_left_alone(MPI_Datatype type, Count count, unsigned uses = 1)
{
    return own_types::has(type) || is_unknown(type, count, uses);
}

// The same for messages: also if MPI moves as many elements of it, and not if it is a long message of a datatype of MPI
// itself.
template <typename Count>
UCXL_MPI_FAST bool is_left_to_mpi(MPI_Datatype type, Count count, unsigned uses = 1)
{
    if (own_types::has(type)) {
        return count < one_pass::min_count();
    }
    if (is_unknown(type, count, uses)) {
        return true;
    }
    const known_type* const known = known_types.find(type);
    return known != nullptr && known->is_left(count);
}

// What is known of a datatype that this call uses, after which it may be known: as soon as that pays.
inline known_type* find_used(MPI_Datatype type, MPI_Count count, unsigned uses = 1)
{
    return is_left_alone(type, count, uses) ? nullptr : look_at(type, count);
}

// Null also if MPI moves as many elements of it. Also a datatype of MPI itself, of a long message.
inline known_type* find_taken(MPI_Datatype type, MPI_Count count)
{
    return is_left_to_mpi(type, count) ? nullptr : look_at(type, count);
}

} // namespace ucxl::mpi

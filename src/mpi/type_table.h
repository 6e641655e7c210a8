// Finds what is known of a datatype by its handle, without a lock: this stands before every call that a program makes.
//
// Derived datatypes that were worth finding out about are in it (type_uses.h), and no others. A handle is
// removed when MPI deletes the attribute of its datatype, and may then be given to another one. A program never uses a
// datatype in one thread while it frees it in another; so a reader that finds its handle in a slot can trust the slot.
#pragma once

#include "known_type.h"
#include "one_pass.h"
#include "report.h"
#include "type_uses.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ucxl::mpi
{

class type_table
{
public:
    known_type* find(MPI_Datatype type) const
    {
        const slots* const current = _current.load(std::memory_order_acquire);
        if (current == nullptr) {
            return nullptr;
        }
        const std::uintptr_t key = number_of(type);
        for (std::size_t at = place_of(key, *current);; at = (at + 1) & current->mask) {
            const std::uintptr_t found = current->all[at].key.load(std::memory_order_acquire);
            if (found == key) {
                return current->all[at].type.load(std::memory_order_relaxed);
            }
            if (found == unused) {
                return nullptr;
            }
        }
    }

    // False if the handle is there already. Throws std::bad_alloc.
    bool add(MPI_Datatype handle, known_type* type);
    // Null if the handle is not there.
    known_type* remove(MPI_Datatype handle);
    // Empties the table and returns what was in it.
    std::vector<known_type*> clear();
    std::vector<known_type*> all() const;

private:
    // No handle of a datatype has these values.
    static constexpr std::uintptr_t unused = 0, removed = 1;

    struct slot {
        std::atomic<std::uintptr_t> key{unused};
        std::atomic<known_type*> type{nullptr};
    };
    struct slots {
        explicit slots(std::size_t size) : all(size), mask(size - 1) {}
        std::vector<slot> all;
        std::size_t mask;
    };

    static std::size_t place_of(std::uintptr_t key, const slots& table)
    {
        return ((key * 0x9e3779b97f4a7c15ULL) >> 40) & table.mask;
    }
    // True if the slot that it took was unused before.
    static bool insert(slots& table, std::uintptr_t key, known_type* type);
    void reclaim(std::size_t at);
    slot* slot_of(std::uintptr_t key) const;
    void grow();

    std::atomic<slots*> _current{nullptr};
    mutable std::mutex _lock;
    std::vector<std::unique_ptr<slots>> _tables; // all that readers may still see
    std::size_t _occupied = 0;                   // slots that are not `unused`
    std::size_t _live     = 0;
};

extern type_table known_types;

// Handles of MPI's own datatypes, and of none: told from derived ones without a look into a table. All handles while
// the library is not active.
class own_types
{
public:
    static bool has(MPI_Datatype type)
    {
        return number_of(type) - _first.load(std::memory_order_relaxed) <=
               _last_distance.load(std::memory_order_relaxed);
    }
    static void set(std::uintptr_t first, std::uintptr_t last)
    {
        _first.store(first, std::memory_order_relaxed);
        _last_distance.store(last - first, std::memory_order_relaxed);
    }

private:
    static constinit inline std::atomic<std::uintptr_t> _first{0}, _last_distance{UINTPTR_MAX};
};

// Null for datatypes that MPI shall move, and for those that nothing is known of yet. Any handle may be asked for, also
// one that MPI would not look at.
inline known_type* find_known(MPI_Datatype type)
{
    return own_types::has(type) ? nullptr : known_types.find(type);
}

// Finds out what a datatype is. Returns what is known of it from now on. The library defines it, which knows what is
// attached to datatypes.
known_type* learn(MPI_Datatype type) noexcept;

// The same for a datatype that this call uses, after which it may be known: as soon as that pays. MPI has to know the
// handle.
inline known_type* find_used(MPI_Datatype type, MPI_Count count, unsigned uses = 1)
{
    if (own_types::has(type)) {
        return nullptr;
    }
    known_type* const known = known_types.find(type);
    if (known != nullptr) {
        return known;
    }
    if (!uses_of_types.note(type, count, uses)) [[likely]] {
        report::note_unknown(uses);
        return nullptr;
    }
    return learn(type);
}

// Null also if MPI moves as many elements of it. Also a datatype of MPI itself, of a long message.
inline known_type* find_taken(MPI_Datatype type, MPI_Count count, unsigned uses = 1)
{
    known_type* const known = count >= one_pass::min_count() && own_types::has(type) ? one_pass::find(type, count)
                                                                                     : find_used(type, count, uses);
    return known == nullptr || known->is_left(count) ? nullptr : known;
}

} // namespace ucxl::mpi

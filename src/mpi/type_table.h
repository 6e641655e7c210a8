// Finds what is known of a datatype by its handle, without a lock: this stands before every call that a program makes.
//
// Only committed derived datatypes are in it. A handle is removed when MPI deletes the attribute of its datatype, and
// may then be given to another one. A program never uses a datatype in one thread while it frees it in another; so a
// reader that finds its handle in a slot can trust the slot.
#pragma once

#include "known_type.h"

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

    bool is_empty() const { return _current.load(std::memory_order_relaxed) == nullptr; }
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

// Null for datatypes that MPI shall move: all but derived ones.
inline known_type* find_known(MPI_Datatype type)
{
    return known_types.find(type);
}

// Null also if MPI moves as many elements of it.
inline known_type* find_taken(MPI_Datatype type, MPI_Count count)
{
    known_type* const known = find_known(type);
    return known == nullptr || known->is_left(count) ? nullptr : known;
}

} // namespace ucxl::mpi

#include "type_table.h"

namespace ucxl::mpi
{

constinit type_table known_types;

bool type_table::insert(slots& table, std::uintptr_t key, known_type* type)
{
    std::size_t at = place_of(key, table);
    while (table.all[at].key.load(std::memory_order_relaxed) > removed) {
        at = (at + 1) & table.mask;
    }
    const bool was_unused = table.all[at].key.load(std::memory_order_relaxed) == unused;
    table.all[at].type.store(type, std::memory_order_relaxed);
    table.all[at].key.store(key, std::memory_order_release);
    return was_unused;
}

type_table::slot* type_table::slot_of(std::uintptr_t key) const
{
    slots* const table = _current.load(std::memory_order_relaxed);
    if (table == nullptr) {
        return nullptr;
    }
    for (std::size_t at = place_of(key, *table);; at = (at + 1) & table->mask) {
        const std::uintptr_t found = table->all[at].key.load(std::memory_order_relaxed);
        if (found == key) {
            return &table->all[at];
        }
        if (found == unused) {
            return nullptr;
        }
    }
}

// At most half of the slots are ever occupied, so every search ends soon.
void type_table::grow()
{
    const slots* const old = _current.load(std::memory_order_relaxed);
    std::size_t size       = 64;
    while (size < 4 * (_live + 1)) {
        size *= 2;
    }
    _tables.reserve(_tables.size() + 1);
    auto made = std::make_unique<slots>(size);
    if (old != nullptr) {
        for (const slot& each : old->all) {
            if (each.key.load(std::memory_order_relaxed) > removed) {
                insert(*made, each.key.load(std::memory_order_relaxed), each.type.load(std::memory_order_relaxed));
            }
        }
    }
    _occupied = _live;
    _current.store(made.get(), std::memory_order_release);
    _tables.push_back(std::move(made));
}

bool type_table::add(MPI_Datatype handle, known_type* type)
{
    const std::lock_guard guard(_lock);
    const std::uintptr_t key = number_of(handle);
    if (slot_of(key) != nullptr) {
        return false;
    }
    const slots* const table = _current.load(std::memory_order_relaxed);
    if (table == nullptr || 2 * (_occupied + 1) > table->all.size()) {
        grow();
    }
    _occupied += insert(*_current.load(std::memory_order_relaxed), key, type) ? 1 : 0;
    ++_live;
    return true;
}

known_type* type_table::remove(MPI_Datatype handle)
{
    const std::lock_guard guard(_lock);
    slot* const found = slot_of(number_of(handle));
    if (found == nullptr) {
        return nullptr;
    }
    known_type* const type = found->type.exchange(nullptr, std::memory_order_relaxed);
    found->key.store(removed, std::memory_order_release);
    --_live;
    reclaim(static_cast<std::size_t>(found - _current.load(std::memory_order_relaxed)->all.data()));
    return type;
}

// A removed slot before an unused one ends no search too early, so it is as good as unused. Without this a program that
// makes and frees datatypes all the time would need new tables all the time.
void type_table::reclaim(std::size_t at)
{
    slots& table = *_current.load(std::memory_order_relaxed);
    if (table.all[(at + 1) & table.mask].key.load(std::memory_order_relaxed) != unused) {
        return;
    }
    while (table.all[at].key.load(std::memory_order_relaxed) == removed) {
        table.all[at].key.store(unused, std::memory_order_release);
        --_occupied;
        at = (at + table.mask) & table.mask;
    }
}

std::vector<known_type*> type_table::all() const
{
    const std::lock_guard guard(_lock);
    std::vector<known_type*> types;
    if (const slots* const table = _current.load(std::memory_order_relaxed)) {
        for (const slot& each : table->all) {
            if (each.key.load(std::memory_order_relaxed) > removed) {
                types.push_back(each.type.load(std::memory_order_relaxed));
            }
        }
    }
    return types;
}

std::vector<known_type*> type_table::clear()
{
    auto types = all();
    const std::lock_guard guard(_lock);
    _current.store(nullptr, std::memory_order_release);
    _occupied = _live = 0;
    return types;
}

} // namespace ucxl::mpi

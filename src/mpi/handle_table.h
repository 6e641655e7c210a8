// Finds what belongs to a handle, without a lock: this stands before every call that a program makes.
//
// A handle is removed when what it names ends, and may then name another thing. A program never uses a thing in one
// thread while it ends it in another; so a reader that finds its handle in a slot can trust the slot.
#pragma once

#include "mpi_functions.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ucxl::mpi
{

template <typename Handle, typename Value>
class handle_table
{
public:
    Value* find(Handle handle) const
    {
        const slots* const current = _current.load(std::memory_order_acquire);
        if (current == nullptr) {
            return nullptr;
        }
        const std::uintptr_t key = number_of(handle);
        for (std::size_t at = place_of(key, *current);; at = (at + 1) & current->mask) {
            const std::uintptr_t found = current->all[at].key.load(std::memory_order_acquire);
            if (found == key) {
                return current->all[at].value.load(std::memory_order_relaxed);
            }
            if (found == unused) {
                return nullptr;
            }
        }
    }

    // Makes room, so that the next add() does not throw if nobody else adds before it. Throws std::bad_alloc.
    void reserve();
    // False if the handle is there already. Throws std::bad_alloc.
    bool add(Handle handle, Value* value);
    // Null if the handle is not there.
    Value* remove(Handle handle);
    // Empties the table and returns what was in it.
    std::vector<Value*> clear();
    std::vector<Value*> all() const;

private:
    // No handle has these values.
    static constexpr std::uintptr_t unused = 0, removed = 1;

    struct slot {
        std::atomic<std::uintptr_t> key{unused};
        std::atomic<Value*> value{nullptr};
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
    static bool insert(slots& table, std::uintptr_t key, Value* value);
    void reclaim(std::size_t at);
    slot* slot_of(std::uintptr_t key) const;
    void make_room();
    void grow();

    std::atomic<slots*> _current{nullptr};
    mutable std::mutex _lock;
    std::vector<std::unique_ptr<slots>> _tables; // all that readers may still see
    std::size_t _occupied = 0;                   // slots that are not `unused`
    std::size_t _live     = 0;
};

template <typename Handle, typename Value>
bool handle_table<Handle, Value>::insert(slots& table, std::uintptr_t key, Value* value)
{
    std::size_t at = place_of(key, table);
    while (table.all[at].key.load(std::memory_order_relaxed) > removed) {
        at = (at + 1) & table.mask;
    }
    const bool was_unused = table.all[at].key.load(std::memory_order_relaxed) == unused;
    table.all[at].value.store(value, std::memory_order_relaxed);
    table.all[at].key.store(key, std::memory_order_release);
    return was_unused;
}

template <typename Handle, typename Value>
auto handle_table<Handle, Value>::slot_of(std::uintptr_t key) const -> slot*
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
template <typename Handle, typename Value>
void handle_table<Handle, Value>::grow()
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
                insert(*made, each.key.load(std::memory_order_relaxed), each.value.load(std::memory_order_relaxed));
            }
        }
    }
    _occupied = _live;
    _current.store(made.get(), std::memory_order_release);
    _tables.push_back(std::move(made));
}

template <typename Handle, typename Value>
void handle_table<Handle, Value>::make_room()
{
    const slots* const table = _current.load(std::memory_order_relaxed);
    if (table == nullptr || 2 * (_occupied + 1) > table->all.size()) {
        grow();
    }
}

template <typename Handle, typename Value>
void handle_table<Handle, Value>::reserve()
{
    const std::lock_guard guard(_lock);
    make_room();
}

template <typename Handle, typename Value>
bool handle_table<Handle, Value>::add(Handle handle, Value* value)
{
    const std::lock_guard guard(_lock);
    const std::uintptr_t key = number_of(handle);
    if (slot_of(key) != nullptr) {
        return false;
    }
    make_room();
    _occupied += insert(*_current.load(std::memory_order_relaxed), key, value) ? 1 : 0;
    ++_live;
    return true;
}

template <typename Handle, typename Value>
Value* handle_table<Handle, Value>::remove(Handle handle)
{
    const std::lock_guard guard(_lock);
    slot* const found = slot_of(number_of(handle));
    if (found == nullptr) {
        return nullptr;
    }
    Value* const value = found->value.exchange(nullptr, std::memory_order_relaxed);
    found->key.store(removed, std::memory_order_release);
    --_live;
    reclaim(static_cast<std::size_t>(found - _current.load(std::memory_order_relaxed)->all.data()));
    return value;
}

// A removed slot before an unused one ends no search too early, so it is as good as unused. Without this a program that
// makes and ends such things all the time would need new tables all the time.
template <typename Handle, typename Value>
void handle_table<Handle, Value>::reclaim(std::size_t at)
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

template <typename Handle, typename Value>
std::vector<Value*> handle_table<Handle, Value>::all() const
{
    const std::lock_guard guard(_lock);
    std::vector<Value*> values;
    if (const slots* const table = _current.load(std::memory_order_relaxed)) {
        for (const slot& each : table->all) {
            if (each.key.load(std::memory_order_relaxed) > removed) {
                values.push_back(each.value.load(std::memory_order_relaxed));
            }
        }
    }
    return values;
}

template <typename Handle, typename Value>
std::vector<Value*> handle_table<Handle, Value>::clear()
{
    auto values = all();
    const std::lock_guard guard(_lock);
    _current.store(nullptr, std::memory_order_release);
    _occupied = _live = 0;
    return values;
}

} // namespace ucxl::mpi

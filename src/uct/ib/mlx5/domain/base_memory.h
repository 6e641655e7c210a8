// The memory below windows, registered with the device: one registration cache for each domain. Registrations stay when
// a window goes, until the memory is unmapped or the domain closes.
//
// All are strictly ordered: atomic operations go through every window key, and a key over memory of relaxed order would
// inherit that order.
//
// Example:
//     auto held = UCXL_TRY(memory.hold({start, end}));   // held.lkey(), for as long as `held` lives
#pragma once

#include "abi/registration_cache.h"
#include "sys/error.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <infiniband/verbs.h>

namespace ucxl::mlx5
{

struct memory_range {
    std::uintptr_t start = 0;
    std::uintptr_t end   = 0; // one past the last byte

    std::uint64_t length() const { return end - start; }
    bool operator==(const memory_range&) const = default;
};

class card_memory;

class base_memory
{
public:
    // A registration in use.
    class held
    {
    public:
        held(base_memory& memory, abi::registration_cache::entry* entry) : _memory(&memory), _entry(entry) {}
        // Memory of the card, which has its key for as long as it is allocated.
        explicit held(std::uint32_t lkey) : _lkey(lkey) {}
        held(held&& other) noexcept
            : _memory(other._memory), _entry(std::exchange(other._entry, nullptr)), _lkey(other._lkey)
        {
        }
        held& operator=(held&& other) noexcept
        {
            std::swap(_memory, other._memory);
            std::swap(_entry, other._entry);
            std::swap(_lkey, other._lkey);
            return *this;
        }
        ~held();

        std::uint32_t lkey() const;
        bool is_card_memory() const { return _entry == nullptr; }

    private:
        base_memory* _memory                   = nullptr;
        abi::registration_cache::entry* _entry = nullptr; // null for memory of the card
        std::uint32_t _lkey                    = 0;
    };

    // Errors: no_memory, unsupported.
    static result<std::unique_ptr<base_memory>> create(ibv_pd* pd);

    // From now on ranges may also be memory of this card.
    void set_card(const card_memory& card) { _card = &card; }

    // Errors: invalid_param (not mapped, not writable, or over the limit of locked memory), no_memory.
    result<held> hold(const memory_range& range);

    std::uint64_t bytes() const { return _bytes.load(std::memory_order_relaxed); } // registered

private:
    explicit base_memory(ibv_pd* pd) : _pd(pd) {}

    static void* add(void* context, void* start, std::size_t length);
    static void remove(void* context, void* registration, std::size_t length);

    ibv_pd* _pd;
    std::atomic<const card_memory*> _card{nullptr};
    std::atomic<std::uint64_t> _bytes{0};
    std::unique_ptr<abi::registration_cache> _cache;
};

} // namespace ucxl::mlx5

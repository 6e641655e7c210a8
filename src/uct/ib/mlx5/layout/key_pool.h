// Unused memory keys, sorted by their room for translation entries. Making a key is a command to the device; binding
// one is not. Returned keys stay bound to their old memory, but nobody knows them, and the next user binds them anew.
//
// Thread safety: none but where it says otherwise; the lock of the domain guards it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "sys/error.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class key_pool
{
    // One of the keys that exist, until it ends.
    class counted
    {
    public:
        counted() = default;
        explicit counted(std::atomic<std::size_t>& count) : _count(&count) {}
        counted(counted&& other) noexcept : _count(std::exchange(other._count, nullptr)) {}
        counted& operator=(counted&& other) noexcept
        {
            std::swap(_count, other._count);
            return *this;
        }
        ~counted()
        {
            if (_count != nullptr) {
                --*_count;
            }
        }

    private:
        std::atomic<std::size_t>* _count = nullptr;
    };

public:
    // What a fresh key needs before it can be used.
    using preparation = std::function<result<void>(const mlx5dv_mkey& fresh)>;

    explicit key_pool(ibv_pd* pd) : _pd(pd) {}

    struct key {
        counted existing{}; // ends after the key itself
        mkey_owner mkey;
        std::uint32_t room    = 0; // translation entries
        std::uint64_t created = 0; // counts the keys of the pool: the device may use a number again
    };

    // To be called while there are no unused keys.
    void prepare_keys(preparation prepare) { _prepare = std::move(prepare); }
    // Of each size, `most` unused keys stay; further ones are destroyed.
    void keep(std::size_t most) { _max_kept = most; }
    // No more keys than that exist, used and unused ones of all sizes.
    void limit(std::size_t most) { _max_existing = most; }

    // Takes a key with room for at least that many entries. At the limit an unused key of another size is used, or goes
    // for a new one. Errors: no_resource (the limit, and no key is unused), io_error, no_memory.
    result<key> take(std::uint32_t entries);
    void give_back(key&& unused) noexcept;
    // Waits until take() finds an unused key; lets go of the domain's lock meanwhile.
    // Returns false if there is none at the deadline.
    bool wait_for_unused(std::unique_lock<std::mutex>& lock, std::uint32_t entries,
                         std::chrono::steady_clock::time_point deadline);
    // Makes a key with room for at least that many entries, for give_back(). Needs no lock. Errors: as take().
    result<key> create(std::uint32_t entries);
    // Destroys all unused keys.
    void clear() noexcept;
    // Takes out the keys of this size that nobody needed since the last call, as long as `least` unused ones stay. They
    // end with the result, which needs no lock.
    std::vector<key> take_idle(std::uint32_t entries, std::size_t least);

    // Any thread may ask.
    std::size_t num_unused() const { return _num_unused.load(std::memory_order_relaxed); }
    // Of those with room for at least that many entries, and with the least such room.
    std::size_t num_unused(std::uint32_t entries) const;
    std::size_t num_existing() const { return _num_existing.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t num_classes = 9; // 4^0 .. 4^8 entries

    struct size_class {
        std::vector<key> unused;
        std::size_t fewest_unused = 0; // since the last call of take_idle()
    };

    static std::size_t class_of(std::uint32_t entries);
    key pop(size_class& same);
    void count_unused(std::size_t difference);

    ibv_pd* _pd;
    preparation _prepare;
    std::atomic<std::uint64_t> _num_created{0};
    std::atomic<std::size_t> _num_existing{0};
    std::atomic<std::size_t> _num_unused{0};
    std::size_t _max_kept     = 64;
    std::size_t _max_existing = std::numeric_limits<std::size_t>::max();
    std::array<size_class, num_classes> _classes;
    std::condition_variable _returned;
};

// Makes a free key for that many entries; the device chooses its number.
result<mkey_owner> create_key(ibv_pd* pd, std::uint32_t entries);

} // namespace ucxl::mlx5

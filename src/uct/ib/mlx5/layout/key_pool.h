// Unused memory keys, sorted by their room for translation entries. Making a key is a command to the device; binding
// one is not. The next user of a key binds it anew.
//
// Somebody may still use a key that was returned: a peer whose request is late. So the key that was returned first is
// the next one, and it may have to rest before.
//
// Thread safety: none but where it says otherwise; the lock of the domain guards it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
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
        std::uint32_t number  = 0; // with the variant in its low byte
        std::uint32_t room    = 0; // translation entries
        std::uint64_t created = 0; // counts the keys of the pool: the device may use a number again
        std::chrono::steady_clock::time_point returned{}; // the last time; fresh keys never were

        bool is_fresh() const { return returned == std::chrono::steady_clock::time_point{}; }
    };

    // A key that was returned so long ago may be used again, even if few others were returned since.
    static constexpr std::chrono::seconds longest_rest{1};

    // To be called while there are no unused keys.
    void prepare_keys(preparation prepare) { _prepare = std::move(prepare); }
    // Of each size, `most` unused keys stay; further ones are destroyed.
    void keep(std::size_t most) { _max_kept = most; }
    // A returned key rests until that many others of its size were returned, at most for longest_rest. None rests at
    // the limit, or if the device gives no more.
    void rest(std::size_t num_others) { _num_resting = num_others; }
    // No more keys than that exist, used and unused ones of all sizes.
    void limit(std::size_t most) { _max_existing = most; }

    // Takes a key with room for at least that many entries: one that does not rest, a new one, or if the device gives
    // none an unused one of at least that size. At the limit an unused key of another size is used, or goes for a new
    // one. Errors: no_resource (the limit, and no key is unused), io_error, no_memory.
    result<key> take(std::uint32_t entries);
    void give_back(key&& unused) noexcept;
    // One of create(), which nobody has used.
    void add(key&& fresh) noexcept;
    // Waits until take() finds an unused key that it may take; lets go of the domain's lock meanwhile.
    // Returns false if there is none at the deadline.
    bool wait_for_unused(std::unique_lock<std::mutex>& lock, std::uint32_t entries,
                         std::chrono::steady_clock::time_point deadline);
    // Makes a key with room for at least that many entries, for add(). Needs no lock. Errors: as take().
    result<key> create(std::uint32_t entries);
    // Destroys all unused keys.
    void clear() noexcept;
    // Takes out the keys of this size that nobody needed since the last call, as long as `least` stay that do not rest.
    // They end with the result, which needs no lock.
    std::vector<key> take_idle(std::uint32_t entries, std::size_t least);

    // Those with room for at least that many entries, and with the least such room, that do not rest.
    std::size_t num_ready(std::uint32_t entries) const;
    // Whether there are some with room for at least that many entries. They may rest.
    bool has_unused(std::uint32_t entries) const;
    // Any thread may ask.
    bool is_at_limit() const { return num_existing() >= _max_existing; }
    std::size_t num_unused() const { return _num_unused.load(std::memory_order_relaxed); }
    std::size_t num_existing() const { return _num_existing.load(std::memory_order_relaxed); }

private:
    static constexpr std::size_t num_classes = 9; // 4^0 .. 4^8 entries

    struct size_class {
        std::deque<key> unused;        // fresh ones, then the others in the order they were returned
        std::size_t fewest_unused = 0; // since the last call of take_idle()
    };

    static std::size_t class_of(std::uint32_t entries);
    // The first one from `first` on that has unused keys; num_classes if there is none.
    std::size_t class_with_unused(std::size_t first) const;
    // Whether the key of that index does not rest. Those before it do not, either.
    bool is_ready(const size_class& same, std::size_t index) const;
    key pop(size_class& same);
    // Calls put(to, key) if the key stays.
    template <typename Put>
    void keep_unused(key&& unused, Put&& put) noexcept;
    void count_unused(std::size_t difference);

    ibv_pd* _pd;
    preparation _prepare;
    std::atomic<std::uint64_t> _num_created{0};
    std::atomic<std::size_t> _num_existing{0};
    std::atomic<std::size_t> _num_unused{0};
    std::size_t _num_resting  = 0;
    std::size_t _max_kept     = 64;
    std::size_t _max_existing = std::numeric_limits<std::size_t>::max();
    std::array<size_class, num_classes> _classes;
    std::condition_variable _returned;
};

// The low bytes of first keys. Each user of a key gets the next one, so whoever has an earlier number is refused. The
// device may use the index of a key that ended again, so the indices are counted, and not the keys.
class key_variants
{
public:
    // The key with its next variant, which its next binding gives it.
    void renumber(key_pool::key& key)
    {
        const std::uint32_t index = key.number >> 8;
        key.number                = index << 8 | ++_last[index % _last.size()];
    }

private:
    std::array<std::uint8_t, 4096> _last{}; // indices that share one take the values in turn
};

// Makes a free key for that many entries; the device chooses its number.
result<mkey_owner> create_key(ibv_pd* pd, std::uint32_t entries);

} // namespace ucxl::mlx5

// Unused memory keys, sorted by their room for translation entries. Making a key is a command to the device; binding
// one is not. Returned keys stay bound to their old memory, but nobody knows them, and the next user binds them anew.
//
// Thread safety: none but where it says otherwise; the lock of the domain guards it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "sys/error.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class key_pool
{
public:
    // What a fresh key needs before it can be used.
    using preparation = std::function<result<void>(const mlx5dv_mkey& fresh)>;

    explicit key_pool(ibv_pd* pd) : _pd(pd) {}

    struct key {
        mkey_owner mkey;
        std::uint32_t room    = 0; // translation entries
        std::uint64_t created = 0; // counts the keys of the pool: the device may use a number again
    };

    // To be called while there are no unused keys.
    void prepare_keys(preparation prepare) { _prepare = std::move(prepare); }
    // Of each size, `most` unused keys stay; further ones are destroyed.
    void keep(std::size_t most) { _max_kept = most; }

    // Takes a key with room for at least that many entries.
    result<key> take(std::uint32_t entries);
    void give_back(key&& unused) noexcept;
    // Makes a key with room for at least that many entries, for give_back(). Needs no lock.
    result<key> create(std::uint32_t entries);
    // Destroys all unused keys.
    void clear() noexcept;
    std::size_t num_unused() const;
    // Of those with room for at least that many entries, and with the least such room.
    std::size_t num_unused(std::uint32_t entries) const;

private:
    static constexpr std::size_t num_classes = 9; // 4^0 .. 4^8 entries

    ibv_pd* _pd;
    preparation _prepare;
    std::atomic<std::uint64_t> _num_created{0};
    std::size_t _max_kept = 64;
    std::array<std::vector<key>, num_classes> _unused;
};

// Makes a free key for that many entries; the device chooses its number.
result<mkey_owner> create_key(ibv_pd* pd, std::uint32_t entries);

} // namespace ucxl::mlx5

// Unused memory keys, sorted by their room for translation entries. Making a key is a command to the device; binding
// one is not. Returned keys stay bound to their old memory, but nobody knows them, and the next user binds them anew.
//
// Thread safety: none; the lock of the domain guards it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sys/error.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class key_pool
{
public:
    explicit key_pool(ibv_pd* pd) : _pd(pd) {}

    struct key {
        mkey_owner mkey;
        std::uint32_t room = 0; // translation entries
    };

    // Takes a key with room for at least that many entries.
    result<key> take(std::uint32_t entries);
    void give_back(key&& unused);
    // Makes a key with room for at least that many entries, for give_back().
    result<key> create(std::uint32_t entries);
    std::size_t num_unused() const;

private:
    static constexpr std::size_t num_classes = 9;  // 4^0 .. 4^8 entries
    static constexpr std::size_t max_kept    = 64; // per class

    ibv_pd* _pd;
    std::array<std::vector<key>, num_classes> _unused;
};

// Makes a free key for that many entries; the device chooses its number.
result<mkey_owner> create_key(ibv_pd* pd, std::uint32_t entries);

} // namespace ucxl::mlx5

// Unbound memory keys, kept by how many translation entries they have room for: making one is a command to the device,
// binding it is not. Keys come back bound to what they were; nobody knows them, and the next user binds them anew.
//
// Thread safety: none, the domain's lock guards it.
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

    // With room for that many entries at least.
    result<key> take(std::uint32_t entries);
    void give_back(key&& unused);

private:
    static constexpr std::size_t num_classes = 9;  // 4^0 .. 4^8 entries
    static constexpr std::size_t max_kept    = 64; // of a class

    ibv_pd* _pd;
    std::array<std::vector<key>, num_classes> _unused;
};

// A key of the device's choosing, free, for that many entries.
result<mkey_owner> create_key(ibv_pd* pd, std::uint32_t entries);

} // namespace ucxl::mlx5

// A key that shows another key, which begins at 0, at a virtual address: entities of 2 GiB from its start on. It is for
// devices whose bind requests cannot move the start of a key. It is made once, for the longest layout it can show; the
// key below decides how much of it is valid.
//
// If it has the right of atomic operations, the key below has to be bound when it is made: firmware refuses it
// otherwise (UCX, pull request 8218). At an address that is no multiple of 8 it does not get that right.
//
// On a device whose memory all has relaxed order (capabilities.h), a key has to have it, too (newer UCXs do so).
#pragma once

#include <cstdint>

#include "sys/error.h"
#include "umr_request.h"
#include "verbs_handles.h"

namespace ucxl::mlx5
{

class address_overlay
{
public:
    static result<address_overlay> create(ibv_pd* pd, std::uint32_t target, std::uint64_t address,
                                          const key_rights& rights, bool has_relaxed_order);

    std::uint32_t key() const { return _key; }
    std::uint64_t length() const { return _length; }

private:
    address_overlay(devx_owner&& object, std::uint32_t key, std::uint64_t length)
        : _object(std::move(object)), _key(key), _length(length)
    {
    }

    devx_owner _object;
    std::uint32_t _key;
    std::uint64_t _length;
};

} // namespace ucxl::mlx5

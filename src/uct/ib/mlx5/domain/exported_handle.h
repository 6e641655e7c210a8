// What a domain packs when it exports memory to another process on the same device (a DPU): which key, of which
// function, and the token that opens it. It begins with what stock UCX would take for a key that no device has, so that
// a process without this library refuses it.
//
// The bytes come from a peer and may be anything. A wrong token is found by the device: then there is no alias.
#pragma once

#include "sys/error.h"
#include "uct/ib/mlx5/layout/vhca_access.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ucxl::mlx5
{

struct exported_handle {
    static constexpr std::size_t length = 72; // bytes; UCX's field for it has 8 bits

    std::uint32_t key     = 0;
    std::uint16_t vhca_id = 0;
    std::uint64_t created = 0; // of the pool's keys, see key_pool
    access_token token{};

    bool operator==(const exported_handle&) const = default;
};

void pack(const exported_handle& handle, std::span<std::byte, exported_handle::length> bytes);

// Whether the bytes are of this library. Reads six of them: that many has every exported key.
bool is_exported_handle(const void* bytes);

// Errors: malformed. Reads `length` bytes; is_exported_handle() must be true.
result<exported_handle> unpack_exported(const void* bytes);

} // namespace ucxl::mlx5

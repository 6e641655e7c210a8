// What a domain packs when it exports memory to another process on the same device (a DPU): which key, of which
// function, the token that opens it, and the range of addresses. It begins with what stock UCX would take for a key
// that no device has, so that a process without this library refuses it.
//
// A handle also announces keys that the exporting process will use for other memory, so that the other process can make
// their aliases before it needs them.
//
// The bytes come from a peer and may be anything. A wrong token is found by the device: then there is no alias.
#pragma once

#include "sys/error.h"
#include "uct/ib/mlx5/layout/vhca_access.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ucxl::mlx5
{

// A key that ends and comes again with the same number, in a process that was started again or later in the same one,
// is another key: the token or the count of its pool differ.
struct exported_key {
    std::uint32_t key     = 0;
    std::uint16_t vhca_id = 0;
    std::uint64_t created = 0; // of the pool's keys, see key_pool
    access_token token{};

    bool operator==(const exported_key&) const = default;
};

struct exported_handle {
    static constexpr std::size_t length        = 152; // bytes; UCX's field for it has 8 bits
    static constexpr std::size_t max_announced = 6;

    struct announcement {
        std::uint32_t key;
        std::uint64_t created;

        bool operator==(const announcement&) const = default;
    };

    exported_key key;
    bool is_window             = false; // whose address is not of memory that a CPU reaches
    std::uint64_t address      = 0;
    std::uint64_t memory_bytes = 0;
    // Further keys of the same function and token.
    std::array<announcement, max_announced> announced{};
    std::uint8_t num_announced = 0;

    bool operator==(const exported_handle&) const = default;
};

void pack(const exported_handle& handle, std::span<std::byte, exported_handle::length> bytes);

// Whether the bytes are of this library. Reads six of them: that many has every exported key. `size`: how many there
// are, where UCX tells.
bool is_exported_handle(const void* bytes, std::optional<std::size_t> size = {});

// Errors: malformed. Reads `length` bytes; is_exported_handle() must be true.
result<exported_handle> unpack_exported(const void* bytes);

} // namespace ucxl::mlx5

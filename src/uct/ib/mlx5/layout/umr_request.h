// The work requests that bind a memory key and take the binding back, as bytes for a send queue (mlx5dv_wr_raw_wqe).
// Pure: nothing is posted. Where libmlx5 has a call for the same (mlx5dv_wr_mr_list, _interleaved,
// mlx5dv_wr_set_mkey_access_flags), the bytes are those it writes.
//
// Sources: libmlx5's providers/mlx5/qp.c; PRM, "UMR work request".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "plan.h"
#include "prm/wqe.h"
#include "sys/error.h"

namespace ucxl::mlx5
{

// An entry of a plan with its key and address known.
struct resolved_entry {
    std::uint32_t key     = 0;
    std::uint64_t address = 0;
    std::uint64_t length  = 0; // of a repeat entry: in one turn
    std::uint64_t stride  = 0; // of a repeat entry
};

// Bytes that the entries take in a work request or in memory: padded to 64.
std::size_t entries_bytes(key_kind kind, std::size_t num_entries);

// Writes them, padding zeroed. `out` has entries_bytes(). The error names the field that a value does not fit in; out
// is then undefined.
result<void> encode_entries(key_kind kind, std::uint32_t repeat_count, std::span<const resolved_entry> entries,
                            std::span<std::byte> out);

// Rights beyond local read, which every key has.
struct key_rights {
    bool local_write   = false;
    bool remote_read   = false;
    bool remote_write  = false;
    bool remote_atomic = false;
};

struct bind_request {
    std::uint32_t key = 0; // the key as users have it; its low byte becomes the key's variant
    key_rights rights;
    std::uint64_t length = 0;
    std::optional<std::uint64_t> start_address; // else the key keeps what it has: 0 from its creation on
};

// How the queue treats a request.
struct request_flags {
    bool signaled        = false;
    prm::wqe_fence fence = prm::wqe_fence::none;
};

inline constexpr std::size_t max_request_bytes = 1008; // ds has six bits

struct request_bytes {
    request_bytes() = default;
    request_bytes(const request_bytes& other) { *this = other; }
    request_bytes& operator=(const request_bytes& other);

    alignas(64) std::array<std::byte, max_request_bytes> bytes; // written, and copied, up to size
    std::size_t size = 0;                                       // a multiple of 16
};

// Most entries that fit in a request; `queue_limit` is the longest WQE the queue takes, in bytes.
std::size_t max_inline_entries(key_kind kind, std::size_t queue_limit = max_request_bytes);

// Entries in the request. They come from encode_entries(), and fit max_inline_entries().
void encode_bind(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                 std::span<const std::byte> inline_entries, request_bytes& out);

// Entries in memory the device reads, from `address` (64-byte aligned) of key `lkey` on. False when there are more than
// the 16-bit count of 16-byte units can say.
[[nodiscard]] bool encode_bind_by_pointer(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                                          std::size_t entry_bytes, std::uint32_t lkey, std::uint64_t address,
                                          request_bytes& out);

// The key becomes free: nobody can use it until it is bound again.
void encode_invalidate(std::uint32_t key, std::uint32_t qpn, const request_flags& flags, request_bytes& out);

// Does nothing, after all key changes before it on its queue. Whoever uses a key on the queue that bound it needs a
// fence in between. libmlx5 sets it by itself after its own UMR requests, and clears it after a raw one, so this one
// goes between ours and what the user posts next.
void encode_key_fence(std::uint32_t qpn, const request_flags& flags, request_bytes& out);

} // namespace ucxl::mlx5

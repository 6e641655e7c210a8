// The work requests that bind a memory key and take the binding back, as bytes for a send queue (mlx5dv_wr_raw_wqe).
// Pure: nothing is posted. Where libmlx5 has a call for the same (mlx5dv_wr_mr_list, _interleaved,
// mlx5dv_wr_set_mkey_access_flags), the bytes equal those it writes.
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

// An entry of a plan with a known key and address.
struct resolved_entry {
    std::uint32_t key     = 0;
    std::uint64_t address = 0;
    std::uint64_t length  = 0; // of a repeat entry: in one turn
    std::uint64_t stride  = 0; // of a repeat entry
};

// The bytes that the entries take in a work request or in memory, padded to 64.
std::size_t entries_bytes(key_kind kind, std::size_t num_entries);

// Writes the entries and zeroes the padding. `out` has entries_bytes(). An error names the field whose value does not
// fit; `out` is undefined then.
result<void> encode_entries(key_kind kind, std::uint32_t repeat_count, std::span<const resolved_entry> entries,
                            std::span<std::byte> out);

// Rights beyond local reading, which every key has.
struct key_rights {
    bool local_write   = false;
    bool remote_read   = false;
    bool remote_write  = false;
    bool remote_atomic = false;
};

struct bind_request {
    std::uint32_t key = 0; // the key as users see it; its low byte becomes the variant of the key
    key_rights rights;
    std::uint64_t length = 0;
    std::optional<std::uint64_t> start_address; // otherwise the key keeps its start: 0 from its creation on
};

// How the queue handles a request, and what the device allows in it.
struct request_flags {
    bool signaled            = false;
    prm::wqe_fence fence     = prm::wqe_fence::none; // of key changes: capabilities::umr_fence
    bool leaves_atomic_right = false;                // as it is, because a UMR may not set it
};

inline constexpr std::size_t max_request_bytes = 1008; // ds has six bits

struct request_bytes {
    request_bytes() = default;
    request_bytes(const request_bytes& other) { *this = other; }
    request_bytes& operator=(const request_bytes& other);

    alignas(64) std::array<std::byte, max_request_bytes> bytes; // only bytes up to size are written and copied
    std::size_t size = 0;                                       // a multiple of 16
};

// The largest number of entries that fit into a request; `queue_limit` is the longest WQE of the queue, in bytes.
std::size_t max_inline_entries(key_kind kind, std::size_t queue_limit = max_request_bytes);

// Binds with the entries in the request. They come from encode_entries() and fit max_inline_entries().
void encode_bind(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                 std::span<const std::byte> inline_entries, request_bytes& out);

// Where entries in memory begin: at multiples of this. DPDK's mlx5_prm.h, UCC's tl/mlx5 and Linux (MLX5_UMR_ALIGN) say
// that the device needs it.
inline constexpr std::size_t pointer_alignment = 2048;

// Binds with entries in memory that the device reads, from `address` (aligned so) of key `lkey` on. Returns false
// if there are more than the 16-bit count of 16-byte units can hold.
[[nodiscard]] bool encode_bind_by_pointer(const bind_request& request, std::uint32_t qpn, const request_flags& flags,
                                          std::size_t entry_bytes, std::uint32_t lkey, std::uint64_t address,
                                          request_bytes& out);

// The key becomes free: nobody can use it until it is bound again.
void encode_invalidate(std::uint32_t key, std::uint32_t qpn, const request_flags& flags, request_bytes& out);

// Does nothing, after all earlier key changes on its queue. Whoever uses a key on the queue that bound it needs a fence
// in between. libmlx5 sets the fence after its own UMR requests, but clears it after a raw one. So this request goes
// between our requests and what the user posts next.
void encode_key_fence(std::uint32_t qpn, const request_flags& flags, request_bytes& out);

// What a device has to be able to do for the request, in words: "repeat block, start address, atomic right".
std::string needs_of(const request_bytes& request);

} // namespace ucxl::mlx5

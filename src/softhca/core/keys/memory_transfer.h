// Moves bytes between two lists of memory references, each translated through its keys: gather, scatter, or both at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "access.h"

namespace ucxl::softhca
{

// An element of a scatter/gather list, or bytes of the model itself (data != nullptr: key and address are unused).
struct reference {
    std::uint32_t key     = 0;
    std::uint64_t address = 0;
    std::uint64_t length  = 0;
    std::byte* data       = nullptr;
};

struct memory_side {
    key_user user;
    right needed = right::local_read;
    std::span<const reference> references;
};

struct transfer_result {
    enum class outcome : std::uint8_t {
        done,
        part_done,    // the turn is used up
        to_refused,   // `fault` says why
        from_refused, // `fault` says why
        to_gone,      // the process of `to` has ended
        from_gone,
    };

    outcome result     = outcome::done;
    access_fault fault = access_fault::none; // also `outside` when translated memory is not mapped
};

// Bytes that are moved after the others, in the same host::move when they fit: pieces in pairs of equal length.
struct trailing_move {
    std::span<const piece> to;
    std::span<const piece> from;
};

// Moves the first `length` bytes of `from` to `to`; both hold that many. Nothing is written outside the translated
// ranges. On a refusal some bytes may have been moved, but none of `behind`. A fault in `behind` is reported as one in
// the translated memory. Under the lock.
//
// With `moved` the transfer stops when the turn of the device is used up, and continues after the first `*moved` bytes,
// which it counts there. The bounds of a key are checked for all bytes at the start. Without `moved` everything is
// moved at once.
transfer_result transfer(environment& device, const memory_side& to, const memory_side& from, std::uint64_t length,
                         const trailing_move& behind = {}, std::uint64_t* moved = nullptr);

} // namespace ucxl::softhca

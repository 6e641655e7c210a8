// Moves bytes between two lists of memory references, each translated through its keys: gather, scatter, both at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "access.h"

namespace ucxl::softhca
{

// One element of a scatter/gather list, or bytes of the caller's own (data != nullptr: key and address mean nothing).
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
        to_gone,      // the process there has ended
        from_gone,
    };

    outcome result     = outcome::done;
    access_fault fault = access_fault::none; // `outside` too where translated memory was not mapped
};

// Bytes that are moved behind the others, in the same host::move where they fit: pieces in pairs of one length.
struct trailing_move {
    std::span<const piece> to;
    std::span<const piece> from;
};

// Moves the first `length` bytes of `from` to the first bytes of `to`; both hold that many. Nothing is written outside
// the translated ranges; on a refusal some bytes may have been moved, but nothing of `behind`. A fault in `behind`
// looks as one in the translated memory. Under the lock.
//
// With `moved` it stops where the turn of the device is used up, and goes on behind the first `*moved` bytes, which are
// counted there; bounds of a key are checked for all of them at the start. Without, it moves everything at once.
transfer_result transfer(environment& device, const memory_side& to, const memory_side& from, std::uint64_t length,
                         const trailing_move& behind = {}, std::uint64_t* moved = nullptr);

} // namespace ucxl::softhca

// Long operations of lay_shm, shared by the two processes (peer/pass_board.h): the initiator moves the bytes piece by
// piece, and if the owner of the remote window makes progress meanwhile, it moves pieces, too. The owner reaches the
// initiator's window as the initiator reaches the owner's, by a key, so both must have memory of the library.
//
// Example: if (const auto offer = offer_to_share(window, buffer, n)) { share_pass(pass, window, offset, *offer, n); }
#pragma once

#include "uct/layout/base/window_copy.h"
#include "uct/layout/peer/import.h"
#include "uct/layout/peer/pass_board.h"

#include <optional>

namespace ucxl
{

// The bytes of an imported window from an offset on, in its sources as they are now.
transfer_side mapped_side(const imported_window& window, const mapped_sources& sources, std::uint64_t offset);

// The two sides of one operation, as the process that moves has them.
struct mapped_pass {
    transfer_side remote;
    transfer_side local;
    pass_direction direction;      // as the owner of `remote` sees it
    const mapped_sources* sources; // of `remote`

    bool is_divisible() const;
    // [at, at + length) of both sides, of an operation of `whole` bytes. Returns false as move_bytes(), or if memory of
    // the remote side was taken away.
    [[nodiscard]] bool move(std::uint64_t at, std::uint64_t length, std::uint64_t whole) const;
};

// The key by which the owner of `window` reaches the local buffer, if sharing may pay: a long operation, and a window
// of this process that was used before; or a very long one. Outside of reader sections.
std::optional<shm_key> offer_to_share(const imported_window& window, const void* buffer, std::size_t length);

// All of the pass by this process, where the window's memory has `window_length` packed bytes. Returns false as
// mapped_pass::move().
[[nodiscard]] bool move_alone(const mapped_pass& pass, std::uint64_t window_length, std::uint64_t length);

// Returns false as move_bytes().
[[nodiscard]] bool share_pass(const mapped_pass& pass, const imported_window& window, std::uint64_t offset,
                              const shm_key& offer, std::uint64_t length);

// Moves pieces of what peers have posted since `seen`. Returns their number. Outside of reader sections.
unsigned take_part_in_passes(std::uint64_t& seen) noexcept;

} // namespace ucxl

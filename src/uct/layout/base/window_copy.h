// Copies bytes where either side may be a window: every operation of the transports ends here.
//
// Example: if (const auto refused = move_range(window_address, staging, 8192)) { the window is not there any more }
#pragma once

#include "failure.h"

#include "ucs/pack/pack_plan.h"
#include "ucs/window/foreign_memory.h"
#include "ucs/window/window.h"

#include <cstddef>
#include <optional>

namespace ucxl
{

// The side that is no usable memory, and the reason. Nothing was copied.
struct refused_range {
    const void* address;
    std::size_t length;
    const char* reason;
};

// The memory of other processes, if the range touches some that they have there, and no window of this process. May
// take a lock, so not in a reader section.
const foreign_memory* foreign_at(const void* address, std::size_t length);
// Whether the range is neither in the arena nor in windows of other processes.
bool is_plain(const void* address, std::size_t length);

// Copies between two ranges that do not overlap. Each of them is plain memory, or all in one live window, also of
// another process. Takes no lock, and allocates nothing unless that window is of another process.
[[nodiscard]] std::optional<refused_range> move_range(void* target, const void* source, std::size_t length);
// The same where one of them has to be in a window, whatever a peer says: otherwise `remote` is refused.
[[nodiscard]] std::optional<refused_range> move_window(void* target, const void* source, std::size_t length,
                                                       const void* remote);

// The same for the most frequent case, a row of blocks and plain memory, by the fewest steps: UCP stages a message in
// fragments of some KB, so what is done for each besides copying counts. False: it is another case, or the range is
// refused, and nothing was copied.
[[nodiscard]] bool write_row(void* window_address, const void* source, std::size_t length) noexcept;
[[nodiscard]] bool read_row(void* target, const void* window_address, std::size_t length) noexcept;

// One side of a copy: plain memory, or packed bytes of a plan.
struct transfer_side {
    const pack_plan* plan; // null: plain memory
    base_list bases;
    std::uint64_t offset;
    std::byte* memory;                 // for plain memory
    window_traffic* traffic = nullptr; // for a window of this process
    // Memory of a network card: the plan is that of one block of it, or some of its bases are inside such windows.
    const indirect_memory* indirect = nullptr;
    bool has_indirect_bases         = false;

    bool is_indirect() const { return indirect != nullptr || has_indirect_bases; }
};

// Returns the range as plain memory of this process or as part of one live window of it, which may show memory of a
// network card. Returns nothing if it touches the arena and is not inside one live window. The result is valid while
// the section is open. Windows of other processes are no sides: copying them waits for a device, which no section may.
std::optional<transfer_side> resolve(const reader_section& section, const void* address, std::size_t length);
// Returns false if memory of a network card is gone or failed. Then some bytes may have been copied. If this is a part
// of a longer operation, `whole` is the length of that.
[[nodiscard]] bool move_bytes(const transfer_side& to, const transfer_side& from, std::size_t length,
                              std::size_t whole = 0);
// Copies a part of one side, `at` bytes from its beginning, from or to plain memory. As move_bytes().
[[nodiscard]] bool read_side(const transfer_side& from, std::uint64_t at, std::uint64_t length, void* target);
[[nodiscard]] bool write_side(const transfer_side& to, std::uint64_t at, std::uint64_t length, const void* source);

inline constexpr const char* card_memory_failed = "are memory of a network card that is gone, or that failed";
inline constexpr const char* imported_memory_failed =
    "are memory of another process that the device cannot reach (any more)";
inline constexpr const char* not_in_a_window = "are not inside a live window";

} // namespace ucxl

// Mappings of files that others may make shorter. Touching what a file does not have any more is a bus error, which
// ends the process. Inside a guarded range it does not: all of the range becomes zeroed memory of this process alone,
// and was_cut() tells so from then on. Whoever works there asks afterwards whether what was read or written counts.
//
// The first range installs a handler of SIGBUS. Signals that are about no such range go on to the handler from before.
//
// Invariant: a range is taken away before its memory is unmapped.
//
// Example: auto guard = UCXL_TRY(guarded_range::create(memory.start(), memory.length()));
//          guarded_range::renew_handler(); copy(...); if (guard.was_cut()) { return failed; }
#pragma once

#include "error.h"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace ucxl
{

struct guarded_place;

class guarded_range
{
public:
    static constexpr std::size_t max_ranges = 1024;

    // [start, start + length) is mapped, in whole pages of its file. Errors: no_resource (max_ranges of the process),
    // io_error (the handler).
    static result<guarded_range> create(std::byte* start, std::uint64_t length);
    guarded_range(guarded_range&& other) noexcept : _place(std::exchange(other._place, nullptr)) {}
    guarded_range& operator=(guarded_range&& other) noexcept
    {
        std::swap(_place, other._place);
        return *this;
    }
    ~guarded_range();

    bool was_cut() const;
    // Before each use of such a range, in the thread that uses it: another part of the program may have put a handler
    // of its own in the place of ours, or the thread may block the signal. Two system calls.
    static void renew_handler() noexcept;

private:
    explicit guarded_range(guarded_place& taken) : _place(&taken) {}

    guarded_place* _place; // null: moved from
};

} // namespace ucxl

// From a memory key to memory: what a WQE's {key, address, length} stands for, checked as the device checks it.
#pragma once

#include <array>
#include <cstdint>

#include "arena.h"

namespace ucxl::softhca
{

enum class right : std::uint8_t {
    local_read,
    local_write,
    remote_read,
    remote_write,
    remote_atomic,
};

enum class access_fault : std::uint8_t {
    none,
    no_such_key,  // index or variant
    not_bound,    // free, or invalidated
    wrong_pd,
    wrong_qp,
    wrong_vhca,
    outside,      // before the start, past the end, or wrapping
    forbidden,    // the key lacks the right
    too_deep,     // more than max_indirection levels
    broken_entry, // a translation entry that cannot be followed
};

// Who uses a key.
struct key_user {
    function_id function = 0;
    std::uint32_t pd     = 0;
    std::uint32_t qpn    = 0;
};

// As QUERY_HCA_CAP reports it.
inline constexpr unsigned max_indirection = 4;

// The pieces of memory behind a range of a key, in order. No allocation; the work for one piece does not depend on how
// many came before it, and starting in the middle of a key of N entries costs O(log N) or less per level.
//
// Every level is checked: key, state, protection domain, bounds, and the right at the first level (those of nested keys
// are the entries' own: they need the local right of the direction). A walk of length 0 checks nothing and has no pieces.
// Call under the lock; keys must not change during the walk.
class key_walk
{
public:
    key_walk(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address, std::uint64_t length,
             right needed);

    // False at the end and at a fault.
    bool next(piece& found);

    access_fault fault() const { return _fault; }

private:
    struct level {
        std::uint32_t mkey; // index
        std::uint64_t offset;
        std::uint64_t left;
        std::uint64_t position; // of the entry; for repeat blocks the turn, too
        std::uint32_t entry;
    };

    environment& _device;
    key_user _user;
    right _needed;
    access_fault _fault = access_fault::none;
    unsigned _depth     = 0;
    std::array<level, max_indirection + 1> _levels{};
};

// Whether the whole range may be used so, without moving anything.
access_fault check_access(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length, right needed);

} // namespace ucxl::softhca

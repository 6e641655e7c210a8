// From a memory key to memory: what a WQE's {key, address, length} stands for, checked as the device checks it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

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
    no_such_key, // index or variant
    not_bound,   // free, or invalidated
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

// As QUERY_HCA_CAP reports it: that many indirect keys may stand above a direct one.
inline constexpr unsigned max_indirection = 4;

// The pieces of memory behind a range of a key, in order. No allocation; the work for one piece does not depend on how
// many came before it, and starting in the middle of a key of N entries costs O(log N) or less per level. The key
// without memory (limits.h) gives pieces of zeros, or pieces that nobody reads.
//
// Every level is checked: key, state, protection domain, queue pair, bounds, and the right: the needed one at the first
// level, below it the local right of the same direction. An alias stands for its target: the alias's protection domain
// has to be the user's, everything below is checked with the target's. A walk of length 0 checks nothing and has no
// pieces. Device memory comes as pieces of space::engine. Call under the lock; keys must not change during the walk.
class key_walk
{
public:
    key_walk(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address, std::uint64_t length,
             right needed)
        : _device(device), _needed(needed), _root{user, {key, address, length}}
    {
    }

    // False at the end and at a fault.
    bool next(piece& found);

    access_fault fault() const { return _fault; }

private:
    struct range {
        std::uint32_t key;
        std::uint64_t address;
        std::uint64_t length;
    };

    struct request {
        key_user user;
        range wanted;
    };

    // An indirect key on the way down.
    struct level {
        const mkey_record* key;
        key_user user;        // of its entries
        std::uint64_t left;   // bytes still to walk
        std::uint64_t offset; // of the next byte: in the list; in the turn of a repeat block
        std::uint32_t turn;
        std::uint32_t entry;
    };

    enum class entered : std::uint8_t {
        memory,
        indirect,
        refused,
    };

    entered enter(const key_user& user, const range& wanted, right needed, piece& found);
    entered enter_nothing(std::uint64_t length, right needed, piece& found);
    entered descend(const mkey_record& key, const key_user& user, std::uint64_t offset, std::uint64_t length);
    entered refuse(access_fault why);
    bool step(level& from, range& wanted);
    bool step_klm(level& from, range& wanted);
    bool step_ksm(level& from, range& wanted);
    bool step_repeat(level& from, range& wanted);

    environment& _device;
    right _needed;
    access_fault _fault = access_fault::none;
    bool _begun         = false;
    piece _nothing      = {}; // of the key without memory, and how much of it is
    std::uint64_t _left = 0;  // still to walk
    unsigned _depth     = 0;
    request _root;
    std::array<level, max_indirection> _levels; // the first _depth of them are in use
};

// The one piece of memory behind a range, or nothing where there may be several, none, or a fault: for those, walk.
std::optional<piece> single_piece(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                                  std::uint64_t length, right needed);

// Whether the whole range may be used so, without moving anything; of more than `most_pieces`, whether the first may.
access_fault check_access(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length, right needed, std::uint64_t most_pieces = ~std::uint64_t{0});

} // namespace ucxl::softhca

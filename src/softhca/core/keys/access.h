// Translates a WQE's {key, address, length} to memory, with the checks of the device.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "softhca/core/arena/arena.h"

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
    no_such_key, // wrong index or variant
    not_bound,   // free, or invalidated
    wrong_pd,
    wrong_qp,
    wrong_vhca,
    outside,      // before the start, past the end, or wrapping
    forbidden,    // the key lacks the right
    too_deep,     // more than max_indirection levels
    broken_entry, // a translation entry that cannot be followed
};

// The user of a key.
struct key_user {
    function_id function = 0;
    std::uint32_t pd     = 0;
    std::uint32_t qpn    = 0;
};

// At most this many indirect keys may be above a direct one, as QUERY_HCA_CAP reports.
inline constexpr unsigned max_indirection = 4;

// Walks the pieces of memory of a range of a key, in order. It allocates nothing. The work for a piece does not depend
// on the number of pieces before it, and starting in the middle of a key of N entries costs at most O(log N) per level.
// The key without memory (limits.h) has pieces of zeros to read, and pieces that nobody reads to write.
//
// Every level is checked: key, state, protection domain, queue pair, bounds and right. The first level needs the right
// that was asked for, each lower level the local right of the same direction. An alias must have the user's protection
// domain; everything below it is checked with that of its target. A walk of length 0 checks nothing and has no pieces.
// Device memory comes as pieces of space::engine. Call it under the lock; keys must not change during a walk.
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

    // An indirect key that the walk is inside.
    struct level {
        const mkey_record* key;
        key_user user;        // the user of its entries
        std::uint64_t left;   // bytes still to walk
        std::uint64_t offset; // of the next byte in the list, or in the turn of a repeat block
        std::uint32_t turn;
        std::uint32_t entry;
        bool by_alias; // entered by an alias of it
    };

    enum class entered : std::uint8_t {
        memory,
        indirect,
        refused,
    };

    entered enter(const key_user& user, const range& wanted, right needed, piece& found);
    entered enter_nothing(std::uint64_t length, right needed, piece& found);
    entered descend(const mkey_record& key, const key_user& user, std::uint64_t offset, std::uint64_t length,
                    bool by_alias);
    std::size_t levels_taken() const;
    entered refuse(access_fault why);
    right right_below() const;
    bool is_refused_below(const mkey_record& key) const;
    bool step(level& current, range& wanted);
    bool step_klm(level& current, range& wanted);
    bool step_ksm(level& current, range& wanted);
    bool step_repeat(level& current, range& wanted);

    environment& _device;
    right _needed;
    access_fault _fault = access_fault::none;
    bool _begun         = false;
    piece _nothing      = {}; // of the key without memory
    std::uint64_t _left = 0;  // bytes still to walk
    unsigned _depth     = 0;
    request _root;
    std::array<level, max_indirection> _levels; // the first _depth levels are used
};

// The one piece of a range. Nothing when there may be several, none, or a fault: the caller then walks.
std::optional<piece> single_piece(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                                  std::uint64_t length, right needed);

// Checks the whole range without moving anything. Of a range with more than `most_pieces` pieces only the first ones
// are checked.
access_fault check_access(environment& device, const key_user& user, std::uint32_t key, std::uint64_t address,
                          std::uint64_t length, right needed, std::uint64_t most_pieces = ~std::uint64_t{0});

} // namespace ucxl::softhca

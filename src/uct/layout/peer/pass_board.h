// Passes that two processes share: one of them, the requester, copies between its memory and that of another process,
// the owner, and takes piece by piece; an owner that is in its progress function anyway takes pieces, too.
//
// A board is a page of the owner's memory, which its peers map. A requester posts a pass in a free slot. The owner
// learns of it by a counter, looks at what the pass asks for, and takes pieces until none is left. The requester
// returns when all pieces are done; those that the owner took and did not finish, because it ended, it does itself.
//
// Bytes of a board come from other processes of the user and may be anything: neither side relies on more than that a
// piece it takes is one of its pass, as it read the pass itself.
//
// The steps are those of test/models/shared_pass.pml: who changes their order changes the model first.
//
// Example of a requester: posted_pass pass(board, request, pieces);
//                         while (const auto piece = pass.take()) { copy(*piece); } pass.finish(is_gone, copy);
#pragma once

#include "key.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace ucxl
{

enum class pass_direction : std::uint64_t { to_owner, from_owner };

// What a requester asks for: to move `length` bytes between the range at `address` of its own window and that at
// `owner_address` of the owner's window, whose key has `owner_generation`.
struct pass_request {
    shm_key key; // of the requester's window
    std::uint64_t address;
    std::uint64_t owner_address;
    std::uint64_t owner_generation;
    std::uint64_t length;
    std::uint64_t piece; // bytes of each piece but the last
    pass_direction direction;
};

inline constexpr std::uint32_t max_pass_pieces = 512;

// Of a request with a piece of 1 byte or more.
constexpr std::uint64_t num_pieces(const pass_request& request)
{
    return request.length / request.piece + (request.length % request.piece != 0);
}

struct pass_slot {
    // The number of the pass in its slot (32 bits), the first piece that nobody took (16), and the piece behind the
    // last one (16).
    alignas(64) std::atomic<std::uint64_t> left;
    std::atomic<std::int32_t> requester; // process number; 0: the slot is free
    // The number of the pass (32 bits), pieces that the owner took and did not do (16), pieces that it did (16).
    alignas(64) std::atomic<std::uint64_t> ended;
    alignas(64) std::array<std::atomic<std::uint64_t>, sizeof(pass_request) / sizeof(std::uint64_t)> request;
};

static_assert(sizeof(pass_request) % sizeof(std::uint64_t) == 0);

struct pass_board {
    std::atomic<std::uint64_t> posted; // passes ever posted
    // How many had been posted when the owner looked last: whoever posts learns from it whether the owner makes
    // progress at all.
    alignas(64) std::atomic<std::uint64_t> looked;
    std::array<pass_slot, 8> slots;

    // By the owner, from any thread.
    void note_look(std::uint64_t posted_then);
};

// The requester's side. One thread.
class posted_pass
{
public:
    // Posts nothing if all slots are taken by living processes; then take() returns all pieces, which must be 1 to
    // max_pass_pieces.
    posted_pass(pass_board& board, const pass_request& request);
    posted_pass(const posted_pass&)            = delete;
    posted_pass& operator=(const posted_pass&) = delete;

    // The next piece for this process to copy, from the front: the owner takes from the end. So both go through
    // neighbouring memory, and if a pass is repeated, most of it is in the caches of the process that had it before.
    std::optional<std::uint32_t> take();

    // After take() has returned nothing: whether the owner took a piece.
    bool was_shared() const { return _num_own < _num_pieces; }
    // What `looked` of the board is at least after the owner has looked at this pass. 0: nothing was posted.
    std::uint64_t count() const { return _count; }

    // Waits for the pieces of the owner, after take() has returned nothing. is_gone() is asked now and then and tells
    // whether the owner can never finish. copy(piece) is called for each piece that the owner left undone.
    template <typename IsGone, typename Copy>
    void finish(IsGone is_gone, Copy copy)
    {
        if (has_all_of_others(is_gone)) {
            return;
        }
        for (std::uint32_t piece = _num_own; piece < _num_pieces; ++piece) {
            copy(piece);
        }
    }

private:
    enum class state : std::uint8_t { working, done, undone };

    template <typename IsGone>
    bool has_all_of_others(IsGone is_gone)
    {
        close();
        state now = state::working;
        for (unsigned turns = 0; (now = state_of_others()) == state::working; ++turns) {
            if (!pause(turns) && is_gone()) {
                break;
            }
        }
        leave();
        return now == state::done;
    }

    void close();
    void leave();
    state state_of_others() const;
    // Returns false when it is time to ask whether the owner is gone.
    static bool pause(unsigned turns);

    pass_slot* _slot      = nullptr;
    std::uint32_t _number = 0;
    std::uint64_t _count  = 0;
    std::uint32_t _num_pieces;
    std::uint32_t _num_own = 0; // the first ones
};

// The passes of this process that one owner was offered. An owner that took no part in some in a row is asked again
// when it has looked at its board since, and at most once in a millisecond. So one that makes no progress costs
// nothing, one that does so seldom costs little, and one that had lost its core takes part again as soon as it has one.
// Any thread; several at once may lose a pass.
class offered_passes
{
public:
    explicit offered_passes(pass_board& board) : _board(board) {}

    pass_board& board() const { return _board; } // of the owner
    // Whether the owner should be offered the next pass.
    bool is_next_worth_offering() const;
    // After each pass that was offered.
    void note(const posted_pass& pass);

private:
    pass_board& _board;
    std::atomic<unsigned> _alone{0};           // in a row, those in which the owner took no part
    std::atomic<std::uint64_t> _last_count{0}; // posted_pass::count() of the last one
    std::atomic<std::int64_t> _last_time{0};
};

// The owner's side: one pass that it may take part in.
class found_pass
{
public:
    // Nothing if no piece of the slot can be taken, or its request is none.
    static std::optional<found_pass> look(pass_slot& slot);

    const pass_request& request() const { return _request; }
    std::uint64_t offset_of(std::uint32_t piece) const { return piece * _request.piece; }
    std::uint64_t length_of(std::uint32_t piece) const; // bytes

    // The next piece to copy. The pass is still that of request() then.
    std::optional<std::uint32_t> take();
    // After each piece that take() returned. Not done: the requester does it.
    void end(bool is_done);

private:
    found_pass(pass_slot& slot, std::uint64_t left, const pass_request& request)
        : _slot(&slot), _number(static_cast<std::uint32_t>(left >> 32)), _left(left), _request(request)
    {
    }

    pass_slot* _slot;
    std::uint32_t _number;
    std::uint64_t _left; // as this owner left it
    pass_request _request;
};

} // namespace ucxl

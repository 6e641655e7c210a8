#include "pass_board.h"

#include "sys/clock.h"
#include "sys/process.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include <sched.h>
#include <signal.h>
#include <time.h>

namespace ucxl
{

namespace
{

using request_words = std::array<std::uint64_t, sizeof(pass_request) / sizeof(std::uint64_t)>;

constexpr std::uint64_t to_word(std::uint32_t number, std::uint32_t high, std::uint32_t low)
{
    return std::uint64_t{number} << 32 | std::uint64_t{high} << 16 | low;
}
constexpr std::uint32_t number_of(std::uint64_t word)
{
    return static_cast<std::uint32_t>(word >> 32);
}
constexpr std::uint32_t high_of(std::uint64_t word)
{
    return static_cast<std::uint32_t>(word >> 16) & 0xffff;
}
constexpr std::uint32_t low_of(std::uint64_t word)
{
    return static_cast<std::uint32_t>(word) & 0xffff;
}

// The next of a kind that the upper or the lower half counts.
constexpr std::uint64_t high_step = std::uint64_t{1} << 16;
constexpr std::uint64_t low_step  = 1;

constexpr unsigned patience             = 4;
constexpr std::int64_t least_time_apart = 1'000'000; // nanoseconds

bool has_ended(pid_t process)
{
    return kill(process, 0) != 0 && errno == ESRCH;
}

// A slot of a process that ended in the middle of a pass is free again.
pass_slot* take_slot(pass_board& board)
{
    const pid_t own = own_pid();
    for (const bool of_ended : {false, true}) {
        for (pass_slot& slot : board.slots) {
            std::int32_t holder = slot.requester.load(std::memory_order_relaxed);
            if ((holder == 0 || (of_ended && holder > 0 && has_ended(holder))) &&
                slot.requester.compare_exchange_strong(holder, own, std::memory_order_acquire)) {
                return &slot;
            }
        }
    }
    return nullptr;
}

bool is_sound(const pass_request& request)
{
    return request.piece > 0 && request.piece <= request.length && num_pieces(request) <= max_pass_pieces &&
           (request.direction == pass_direction::to_owner || request.direction == pass_direction::from_owner);
}

} // namespace

// Never less than before: an older number of another thread would hide the newer look for ever.
void pass_board::note_look(std::uint64_t posted_then)
{
    std::uint64_t before = looked.load(std::memory_order_relaxed);
    while (before < posted_then && !looked.compare_exchange_weak(before, posted_then, std::memory_order_relaxed)) {
    }
}

posted_pass::posted_pass(pass_board& board, const pass_request& request)
    : _slot(take_slot(board)), _num_pieces(num_pieces(request))
{
    if (_slot == nullptr) {
        return;
    }
    _number = number_of(_slot->left.load(std::memory_order_relaxed)) + 1;
    // A requester that ended left its pass open. Nobody may take a piece of it while the request changes.
    _slot->left.exchange(to_word(_number, 0, 0), std::memory_order_acq_rel);
    std::atomic_thread_fence(std::memory_order_release);
    const auto words = std::bit_cast<request_words>(request);
    for (std::size_t i = 0; i < words.size(); ++i) {
        _slot->request[i].store(words[i], std::memory_order_relaxed);
    }
    _slot->ended.store(to_word(_number, 0, 0), std::memory_order_relaxed);
    _slot->left.store(to_word(_number, 0, _num_pieces), std::memory_order_release);
    _count = board.posted.fetch_add(1, std::memory_order_release) + 1;
}

std::optional<std::uint32_t> posted_pass::take()
{
    std::uint32_t piece = _num_own;
    if (_slot != nullptr) {
        std::uint64_t seen = _slot->left.load(std::memory_order_relaxed);
        do {
            piece = high_of(seen);
            // Whatever the word says: only pieces of this pass, and each once.
            if (number_of(seen) != _number || piece >= low_of(seen) || piece != _num_own) {
                return std::nullopt;
            }
        } while (!_slot->left.compare_exchange_weak(seen, seen + high_step, std::memory_order_relaxed));
    }
    if (piece >= _num_pieces) {
        return std::nullopt;
    }
    ++_num_own;
    return piece;
}

// From here on the owner takes no piece.
void posted_pass::close()
{
    if (_slot != nullptr) {
        _slot->left.store(to_word(_number, _num_own, _num_own), std::memory_order_relaxed);
    }
}

void posted_pass::leave()
{
    if (_slot != nullptr) {
        _slot->requester.store(0, std::memory_order_release);
    }
}

posted_pass::state posted_pass::state_of_others() const
{
    const std::uint32_t others = _num_pieces - _num_own;
    if (others == 0 || _slot == nullptr) {
        return others == 0 ? state::done : state::undone;
    }
    const std::uint64_t ended = _slot->ended.load(std::memory_order_acquire);
    if (number_of(ended) != _number || high_of(ended) + low_of(ended) > others) {
        return state::undone; // no owner writes this
    }
    if (high_of(ended) + low_of(ended) < others) {
        return state::working;
    }
    return high_of(ended) == 0 ? state::done : state::undone;
}

bool posted_pass::pause(unsigned turns)
{
    constexpr unsigned spins  = 2000; // as long as a piece takes, if the owner's thread runs
    constexpr unsigned yields = 4000; // then the owner may need this core, and get none by a thread that only yields
    constexpr timespec a_while{.tv_sec = 0, .tv_nsec = 50'000};
    if (turns < spins) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        return true;
    }
    if (turns < spins + yields) {
        sched_yield();
    } else {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &a_while, nullptr);
    }
    return turns % 64 != 0;
}

bool offered_passes::is_next_worth_offering() const
{
    return _alone.load(std::memory_order_relaxed) < patience ||
           (_board.looked.load(std::memory_order_relaxed) >= _last_count.load(std::memory_order_relaxed) &&
            nanoseconds_of(CLOCK_MONOTONIC) - _last_time.load(std::memory_order_relaxed) >= least_time_apart);
}

void offered_passes::note(const posted_pass& pass)
{
    if (pass.was_shared()) {
        _alone.store(0, std::memory_order_relaxed);
        return;
    }
    const unsigned alone = _alone.load(std::memory_order_relaxed);
    _alone.store(std::min(alone + 1, patience), std::memory_order_relaxed);
    _last_count.store(pass.count(), std::memory_order_relaxed);
    _last_time.store(nanoseconds_of(CLOCK_MONOTONIC), std::memory_order_relaxed);
}

std::optional<found_pass> found_pass::look(pass_slot& slot)
{
    const std::uint64_t left = slot.left.load(std::memory_order_acquire);
    if (high_of(left) >= low_of(left)) {
        return std::nullopt;
    }
    request_words words;
    for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = slot.request[i].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (number_of(slot.left.load(std::memory_order_relaxed)) != number_of(left)) {
        return std::nullopt; // the words may be of two requests
    }
    const auto request = std::bit_cast<pass_request>(words);
    if (!is_sound(request) || low_of(left) > num_pieces(request)) {
        return std::nullopt;
    }
    return found_pass(slot, left, request);
}

std::uint64_t found_pass::length_of(std::uint32_t piece) const
{
    return std::min(_request.piece, _request.length - offset_of(piece));
}

// The words of the request were read before; they change only after the pass was closed, and then this fails. Whatever
// the word says: the pieces that are returned become fewer.
std::optional<std::uint32_t> found_pass::take()
{
    const std::uint32_t end = low_of(_left);
    std::uint64_t seen      = _left;
    while (number_of(seen) == _number && low_of(seen) == end && high_of(seen) < end) {
        if (_slot->left.compare_exchange_weak(seen, seen - low_step, std::memory_order_acq_rel,
                                              std::memory_order_acquire)) {
            _left = seen - low_step;
            return end - 1;
        }
    }
    return std::nullopt;
}

void found_pass::end(bool is_done)
{
    const std::uint64_t step = is_done ? low_step : high_step;
    std::uint64_t ended      = _slot->ended.load(std::memory_order_relaxed);
    // The requester may have ended, and another one have its slot.
    while (number_of(ended) == _number &&
           !_slot->ended.compare_exchange_weak(ended, ended + step, std::memory_order_release,
                                               std::memory_order_relaxed)) {
    }
}

} // namespace ucxl

#include "shared_pass.h"

#include "ucs/pack/streaming_limit.h"
#include "uct/layout/peer/export.h"
#include "uct/layout/peer/limits.h"
#include "uct/layout/peer/memory_figures.h"
#include "uct/layout/peer/rkey.h"

#include <algorithm>
#include <atomic>
#include <new>

namespace ucxl
{

namespace
{

// Shorter pieces cost more than the second process gains; the last one of a pass should not be long.
constexpr std::uint64_t min_piece    = 32 << 10;
constexpr std::uint64_t piece_unit   = 4 << 10;
constexpr std::uint64_t usual_pieces = 128;
// Of a window that was not used before: what is moved at least, in all and for each entry of its layout.
constexpr std::uint64_t min_shared_once    = 4 << 20;
constexpr std::uint64_t min_bytes_of_entry = 256;
// Of a put, what the initiator moves after all else: owners that poll for the last byte find all others then.
constexpr std::uint64_t last_bytes = 64;
// What an owner moves before its worker goes on to other transports.
constexpr std::uint64_t max_turn = 1 << 20;

std::uint64_t piece_length(std::uint64_t length)
{
    const std::uint64_t part = (length + usual_pieces - 1) / usual_pieces;
    return std::max(min_piece, (part + piece_unit - 1) / piece_unit * piece_unit);
}

transfer_side part_of(transfer_side side, std::uint64_t at)
{
    if (side.plan == nullptr) {
        side.memory += at;
    } else {
        side.offset += at;
    }
    return side;
}

} // namespace

transfer_side mapped_side(const imported_window& window, const mapped_sources& sources, std::uint64_t offset)
{
    if (sources.contiguous != nullptr) {
        return {nullptr, {}, 0, sources.contiguous + offset};
    }
    return {window.plan.get(), sources.bases, offset, nullptr};
}

bool mapped_pass::is_divisible() const
{
    return (local.plan == nullptr || local.plan->is_divisible()) &&
           (remote.plan == nullptr || remote.plan->is_divisible());
}

bool mapped_pass::move(std::uint64_t at, std::uint64_t length, std::uint64_t whole) const
{
    const transfer_side there = part_of(remote, at), here = part_of(local, at);
    const bool is_done = direction == pass_direction::to_owner ? move_bytes(there, here, length, whole)
                                                               : move_bytes(here, there, length, whole);
    return is_done && !has_lost_memory(*sources);
}

namespace
{

// Whether it pays to tell a peer of the window. One that is made for one message needs a key for it alone, and the peer
// has to read each entry of its layout.
bool is_worth_key(const void* address, std::size_t length)
{
    const reader_section section;
    const window* const found = window_registry::instance().find(address, length);
    if (found == nullptr) {
        return false;
    }
    const auto counts = found->traffic().get();
    if (counts.reads + counts.writes > 0) {
        return true;
    }
    const layout_ptr& described = found->binding().plan->source_layout();
    return length >= min_shared_once && length / min_bytes_of_entry >= described->entries().size();
}

// The owner takes no part where touching its own memory could end it.
bool may_lose_memory(const imported_window& window)
{
    const reader_section section;
    return sources_of(window).may_lose_memory;
}

} // namespace

namespace
{

std::uint64_t rest_of(const mapped_pass& pass, std::uint64_t length)
{
    return pass.direction == pass_direction::to_owner ? std::min(last_bytes, length / 2) : 0;
}

// The last bytes, where all others were moved.
bool move_rest(const mapped_pass& pass, std::uint64_t at, std::uint64_t rest)
{
    if (rest == 0) {
        return true;
    }
    std::atomic_thread_fence(std::memory_order_release);
    return pass.move(at, rest, rest);
}

} // namespace

// Bytes that pass the caches are seen later than those of the last block that are no whole line. A layout that is not
// divisible is not moved in packed order anyway.
bool move_alone(const mapped_pass& pass, std::uint64_t window_length, std::uint64_t length)
{
    const bool may_pass_caches = length >= min_streamed_call && window_length >= streaming_limit();
    const std::uint64_t rest   = may_pass_caches && pass.is_divisible() ? rest_of(pass, length) : 0;
    const bool is_done         = pass.move(0, length - rest, length);
    return move_rest(pass, length - rest, rest) && is_done;
}

std::optional<shm_key> offer_to_share(const imported_window& window, const void* buffer, std::size_t length)
{
    const offered_passes* const passes = passes_of_owner(window);
    if (length < lay_shm_limits().min_shared || passes == nullptr || !is_worth_key(buffer, length) ||
        may_lose_memory(window) || !passes->is_next_worth_offering()) {
        return std::nullopt;
    }
    try {
        const shm_key key = export_window(buffer);
        return key.access == shm_access::mapping ? std::optional(key) : std::nullopt;
    } catch (const std::bad_alloc&) {
        return std::nullopt; // the operation needs no memory
    }
}

bool share_pass(const mapped_pass& pass, const imported_window& window, std::uint64_t offset, const shm_key& offer,
                std::uint64_t length)
{
    const std::uint64_t rest   = rest_of(pass, length);
    const std::uint64_t shared = length - rest;
    const std::uint64_t piece  = piece_length(shared);
    const pass_request request{.key              = offer,
                               .address          = offer.address + pass.local.offset,
                               .owner_address    = window.key.address + offset,
                               .owner_generation = window.key.generation,
                               .length           = shared,
                               .piece            = piece,
                               .direction        = pass.direction};
    bool is_done    = true;
    const auto move = [&](std::uint32_t number) {
        const std::uint64_t at = number * piece;
        is_done                = pass.move(at, std::min(piece, shared - at), length) && is_done;
    };
    offered_passes& passes = *passes_of_owner(window);
    posted_pass posted(passes.board(), request);
    while (const auto number = posted.take()) {
        move(*number);
    }
    passes.note(posted);
    memory_figures::count_pass(posted.was_shared());
    posted.finish([&] { return is_owner_gone(window); }, move);
    return move_rest(pass, shared, rest) && is_done;
}

namespace
{

// The window of a request's key, while a pass is shared.
class requesters_window
{
public:
    explicit requesters_window(const pass_request& request)
    {
        uct_rkey_t rkey = 0;
        void* handle    = nullptr;
        if (unpack_shm_key("lay_shm", shm_access::mapping, &request.key, &rkey, &handle) == UCS_OK) {
            _imported = static_cast<imported_window*>(handle);
        }
    }
    requesters_window(const requesters_window&)            = delete;
    requesters_window& operator=(const requesters_window&) = delete;
    ~requesters_window()
    {
        if (_imported != nullptr) {
            release_window(_imported);
        }
    }

    // Nothing is done for a requester that has ended: the owner may know of that, and use its window for other things.
    bool has(const pass_request& request) const
    {
        return _imported != nullptr && is_inside(*_imported, request.address, request.length) &&
               is_usable_now(*_imported) && is_owner_alive(*_imported);
    }
    mapped_pass pass_with(const transfer_side& own, const pass_request& request) const
    {
        const bool is_to_owner        = request.direction == pass_direction::to_owner;
        const mapped_sources& sources = sources_of(*_imported);
        return {mapped_side(*_imported, sources, request.address - _imported->key.address), own,
                is_to_owner ? pass_direction::from_owner : pass_direction::to_owner, &sources};
    }

private:
    imported_window* _imported = nullptr;
};

const window* find_own(const pass_request& request)
{
    return window_registry::instance().find(reinterpret_cast<const void*>(request.owner_address), request.length);
}

// The generation of the window, if the requester has its key. It is read before and after the key, so that the key is
// of this window.
std::uint64_t own_generation(const pass_request& request)
{
    const auto now = [&]() -> std::uint64_t {
        const reader_section section;
        const window* const found = find_own(request);
        return found != nullptr ? found->generation() : 0;
    };
    const std::uint64_t before = now();
    const std::uint64_t key    = generation_of_exported_window(reinterpret_cast<const void*>(request.owner_address));
    return request.owner_generation != 0 && key == request.owner_generation && now() == before ? before : 0;
}

struct turn {
    unsigned num_pieces;
    bool is_over; // no piece is left
};

turn take_part(found_pass& pass)
{
    const pass_request& request    = pass.request();
    const std::uint64_t generation = own_generation(request);
    if (generation == 0) {
        return {0, true};
    }
    const requesters_window requester(request);
    if (!requester.has(request)) {
        return {0, true};
    }
    // Nothing from here on waits: the requester waits for the pieces that are taken.
    const reader_section section;
    const window* const own = find_own(request);
    if (own == nullptr || own->generation() != generation || !own->binding().is_shared() ||
        own->binding().is_withdrawn() || !own->binding().keeps_its_memory()) {
        return {0, true};
    }
    const auto here = resolve(section, reinterpret_cast<const void*>(request.owner_address), request.length);
    if (!here) {
        return {0, true}; // destroyed meanwhile
    }
    const mapped_pass part = requester.pass_with(*here, request);
    unsigned num_pieces    = 0;
    for (std::uint64_t moved = 0; moved < max_turn; ++num_pieces) {
        const auto piece = pass.take();
        if (!piece) {
            return {num_pieces, true};
        }
        const std::uint64_t length = pass.length_of(*piece);
        pass.end(part.move(pass.offset_of(*piece), length, request.length));
        moved += length;
    }
    return {num_pieces, false};
}

} // namespace

unsigned take_part_in_passes(std::uint64_t& seen) noexcept
{
    const board_file* const own = own_board();
    if (own == nullptr) {
        return 0;
    }
    const std::uint64_t posted = own->board().posted.load(std::memory_order_acquire);
    if (posted == seen || !own->is_own()) [[likely]] {
        return 0;
    }
    unsigned num_pieces = 0;
    bool is_over        = true;
    for (pass_slot& slot : own->board().slots) {
        if (auto pass = found_pass::look(slot)) {
            const turn last = take_part(*pass);
            num_pieces += last.num_pieces;
            is_over = is_over && last.is_over;
        }
    }
    own->board().note_look(posted);
    if (num_pieces > 0) {
        memory_figures::count_pieces(num_pieces);
    }
    if (is_over) {
        seen = posted;
    }
    return num_pieces;
}

} // namespace ucxl

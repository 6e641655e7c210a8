#include "transfer.h"

#include <algorithm>
#include <optional>

namespace ucxl::softhca
{

namespace
{

piece own_memory(const environment& device, std::byte* data, std::uint64_t length)
{
    return {space::engine, device.self, reinterpret_cast<std::uintptr_t>(data), length};
}

// The pieces of the first `length` bytes of one side's references, one after the other. What is behind those bytes is
// not used, so it is not checked either.
class side_walk
{
public:
    side_walk(environment& device, const memory_side& side, std::uint64_t length)
        : _device(device), _side(side), _left(length)
    {
    }

    // False at the end and at a fault.
    bool next(piece& found)
    {
        while (true) {
            if (_walk) {
                if (_walk->next(found)) {
                    _device.memory.counts.translation_pieces++;
                    return true;
                }
                _fault = _walk->fault();
                _walk.reset();
                if (_fault != access_fault::none) {
                    return false;
                }
            }
            if (_following == _side.references.size()) {
                _fault = access_fault::outside;
                return false;
            }
            const reference& now       = _side.references[_following++];
            const std::uint64_t length = std::min(now.length, _left);
            _left -= length;
            if (now.data == nullptr) {
                _walk.emplace(_device, _side.user, now.key, now.address, length, _side.needed);
            } else if (length != 0) {
                found = own_memory(_device, now.data, length);
                return true;
            }
        }
    }

    // Why there was no next piece: the references hold too little, or the key's.
    access_fault fault() const { return _fault; }

private:
    environment& _device;
    const memory_side& _side;
    std::uint64_t _left;
    std::size_t _following = 0;
    std::optional<key_walk> _walk;
    access_fault _fault = access_fault::none;
};

using outcome = transfer_result::outcome;

transfer_result result_of(move_status status)
{
    switch (status) {
    case move_status::ok:
        break;
    case move_status::fault_to:
        return {outcome::to_refused, access_fault::outside};
    case move_status::fault_from:
        return {outcome::from_refused, access_fault::outside};
    case move_status::gone_to:
        return {outcome::to_gone, access_fault::none};
    case move_status::gone_from:
        return {outcome::from_gone, access_fault::none};
    }
    return {};
}

transfer_result move(environment& device, std::span<const piece> to, std::span<const piece> from, std::uint64_t bytes)
{
    const transfer_result result = result_of(device.outside.move(to, from));
    if (result.result == outcome::done) {
        device.memory.counts.bytes_moved += bytes;
    }
    return result;
}

// Of the first reference, where that is enough and is one piece.
std::optional<piece> whole_in_one(environment& device, const memory_side& side, std::uint64_t length)
{
    if (side.references.empty() || side.references.front().length < length) {
        return std::nullopt;
    }
    const reference& only = side.references.front();
    if (only.data != nullptr) {
        return own_memory(device, only.data, length);
    }
    return single_piece(device, side.user, only.key, only.address, length, side.needed);
}

unsigned translated(const memory_side& side)
{
    return side.references.front().data == nullptr ? 1 : 0;
}

// One piece, and what goes behind it.
transfer_result move_whole(environment& device, const piece& to, const piece& from, std::uint64_t length,
                           const trailing_move& behind)
{
    move_batch& batch = device.memory.moves;
    if (behind.to.empty()) {
        return move(device, {&to, 1}, {&from, 1}, length);
    }
    batch.to[0]   = to;
    batch.from[0] = from;
    std::ranges::copy(behind.to, batch.to.begin() + 1);
    std::ranges::copy(behind.from, batch.from.begin() + 1);
    const std::size_t pairs = 1 + behind.to.size();
    return move(device, std::span(batch.to).first(pairs), std::span(batch.from).first(pairs), length);
}

// Cuts the pieces of both sides into pairs of one length, and moves as many at a time as the batch holds.
transfer_result move_in_pairs(environment& device, side_walk& to, side_walk& from, std::uint64_t length,
                              const trailing_move& behind)
{
    move_batch& batch = device.memory.moves;
    std::size_t pairs = 0;
    piece to_left{};
    piece from_left{};
    std::uint64_t pending = 0;
    while (length != 0) {
        if (to_left.length == 0 && !to.next(to_left)) {
            return {outcome::to_refused, to.fault()};
        }
        if (from_left.length == 0 && !from.next(from_left)) {
            return {outcome::from_refused, from.fault()};
        }
        const std::uint64_t common = std::min({to_left.length, from_left.length, length});
        batch.to[pairs]            = {to_left.space, to_left.client, to_left.address, common};
        batch.from[pairs]          = {from_left.space, from_left.client, from_left.address, common};
        to_left.address += common;
        to_left.length -= common;
        from_left.address += common;
        from_left.length -= common;
        length -= common;
        pending += common;
        pairs++;
        if (length == 0 && pairs + behind.to.size() <= move_batch::capacity) {
            std::ranges::copy(behind.to, batch.to.begin() + static_cast<std::ptrdiff_t>(pairs));
            std::ranges::copy(behind.from, batch.from.begin() + static_cast<std::ptrdiff_t>(pairs));
            pairs += behind.to.size();
            return move(device, std::span(batch.to).first(pairs), std::span(batch.from).first(pairs), pending);
        }
        if (pairs == move_batch::capacity || length == 0) {
            const auto moved =
                move(device, std::span(batch.to).first(pairs), std::span(batch.from).first(pairs), pending);
            if (moved.result != outcome::done) {
                return moved;
            }
            pairs   = 0;
            pending = 0;
        }
    }
    return behind.to.empty() ? transfer_result{} : move(device, behind.to, behind.from, 0);
}

} // namespace

transfer_result transfer(environment& device, const memory_side& to, const memory_side& from, std::uint64_t length,
                         const trailing_move& behind)
{
    if (length == 0) {
        return behind.to.empty() ? transfer_result{} : move(device, behind.to, behind.from, 0);
    }
    if (const auto whole_to = whole_in_one(device, to, length)) {
        if (const auto whole_from = whole_in_one(device, from, length)) {
            device.memory.counts.translation_pieces += translated(to) + translated(from);
            return move_whole(device, *whole_to, *whole_from, length, behind);
        }
    }
    side_walk to_walk(device, to, length);
    side_walk from_walk(device, from, length);
    return move_in_pairs(device, to_walk, from_walk, length, behind);
}

} // namespace ucxl::softhca

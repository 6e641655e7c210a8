#include "memory_transfer.h"

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

// The pieces of `length` bytes of one side's references, from `skip` bytes on. Bytes after those are not used, so they
// are not checked.
class side_walk
{
public:
    side_walk(environment& device, const memory_side& side, std::uint64_t skip, std::uint64_t length)
        : _device(device), _side(side), _skip(skip), _left(length)
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
            const std::uint64_t before = std::min(now.length, _skip);
            const std::uint64_t length = std::min(now.length - before, _left);
            _skip -= before;
            _left -= length;
            if (now.data == nullptr) {
                _walk.emplace(_device, _side.user, now.key, now.address + before, length, _side.needed);
            } else if (length != 0) {
                found = own_memory(_device, now.data + before, length);
                return true;
            }
        }
    }

    // Why there is no next piece: the references hold too little, or the fault of the key.
    access_fault fault() const { return _fault; }

private:
    environment& _device;
    const memory_side& _side;
    std::uint64_t _skip;
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

// The piece of the first reference, when that is enough and is one piece.
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

// Moves `length` bytes, one piece on each side, and the trailing pieces.
transfer_result move_whole(environment& device, const piece& to, const piece& from, const trailing_move& behind)
{
    move_batch& batch = device.memory.moves;
    if (behind.to.empty()) {
        return move(device, {&to, 1}, {&from, 1}, to.length);
    }
    batch.to[0]   = to;
    batch.from[0] = from;
    std::ranges::copy(behind.to, batch.to.begin() + 1);
    std::ranges::copy(behind.from, batch.from.begin() + 1);
    const std::size_t pairs = 1 + behind.to.size();
    return move(device, std::span(batch.to).first(pairs), std::span(batch.from).first(pairs), to.length);
}

piece part_of_piece(const piece& whole, std::uint64_t skip, std::uint64_t length)
{
    return {whole.space, whole.client, whole.address + skip, length};
}

// As much of `length` as the turn allows.
transfer_result move_part(environment& device, const piece& to, const piece& from, const trailing_move& behind,
                          std::uint64_t& moved)
{
    const std::uint64_t length = std::min(to.length - moved, device.turn.bytes);
    const bool last            = moved + length == to.length;
    const auto result = move_whole(device, part_of_piece(to, moved, length), part_of_piece(from, moved, length),
                                   last ? behind : trailing_move{});
    if (result.result != outcome::done) {
        return result;
    }
    moved += length;
    device.turn.use(1, length);
    return last ? result : transfer_result{outcome::part_done, access_fault::none};
}

// Cuts the pieces of both sides into pairs of equal length, and moves as many at once as the batch holds or the turn
// allows.
class pair_batch
{
public:
    pair_batch(environment& device, std::uint64_t* moved)
        : _device(device), _batch(device.memory.moves), _moved(moved),
          _most_pairs(moved != nullptr ? std::min<std::size_t>(device.turn.pieces, move_batch::capacity)
                                       : move_batch::capacity),
          _most_bytes(moved != nullptr ? device.turn.bytes : ~std::uint64_t{0})
    {
    }

    bool full() const { return _pairs == _most_pairs || _bytes == _most_bytes; }
    bool has_room(std::size_t pairs) const { return _pairs + pairs <= move_batch::capacity; }
    bool must_stop() const { return _moved != nullptr && _device.turn.used_up(); }

    // Takes the common length of both pieces, at most `length`, off their fronts. Returns that length.
    std::uint64_t take(piece& to, piece& from, std::uint64_t length)
    {
        const std::uint64_t common = std::min({to.length, from.length, length, _most_bytes - _bytes});
        _batch.to[_pairs]          = part_of_piece(to, 0, common);
        _batch.from[_pairs]        = part_of_piece(from, 0, common);
        to                         = part_of_piece(to, common, to.length - common);
        from                       = part_of_piece(from, common, from.length - common);
        _bytes += common;
        ++_pairs;
        return common;
    }

    // Leaves room for the trailing pieces.
    transfer_result flush(const trailing_move& behind)
    {
        std::ranges::copy(behind.to, _batch.to.begin() + static_cast<std::ptrdiff_t>(_pairs));
        std::ranges::copy(behind.from, _batch.from.begin() + static_cast<std::ptrdiff_t>(_pairs));
        const std::size_t all = _pairs + behind.to.size();
        const auto result = move(_device, std::span(_batch.to).first(all), std::span(_batch.from).first(all), _bytes);
        if (_moved != nullptr && result.result == outcome::done) {
            *_moved += _bytes;
            _device.turn.use(_pairs, _bytes);
        }
        _pairs = 0;
        _bytes = 0;
        return result;
    }

private:
    environment& _device;
    move_batch& _batch;
    std::uint64_t* _moved;
    std::size_t _most_pairs;
    std::uint64_t _most_bytes;
    std::size_t _pairs   = 0;
    std::uint64_t _bytes = 0;
};

transfer_result move_in_pairs(side_walk& to, side_walk& from, std::uint64_t length, const trailing_move& behind,
                              pair_batch& batch)
{
    piece to_left{};
    piece from_left{};
    while (length != 0) {
        if (to_left.length == 0 && !to.next(to_left)) {
            return {outcome::to_refused, to.fault()};
        }
        if (from_left.length == 0 && !from.next(from_left)) {
            return {outcome::from_refused, from.fault()};
        }
        length -= batch.take(to_left, from_left, length);
        const bool last = length == 0 && batch.has_room(behind.to.size());
        if (!last && length != 0 && !batch.full()) {
            continue;
        }
        const auto moved = batch.flush(last ? behind : trailing_move{});
        if (last || moved.result != outcome::done) {
            return moved;
        }
        if (length != 0 && batch.must_stop()) {
            return {outcome::part_done, access_fault::none};
        }
    }
    return batch.flush(behind);
}

} // namespace

transfer_result transfer(environment& device, const memory_side& to, const memory_side& from, std::uint64_t length,
                         const trailing_move& behind, std::uint64_t* moved)
{
    const std::uint64_t before = moved != nullptr ? *moved : 0;
    if (length <= before) { // less than before: the program has changed a WQE that it had posted
        return behind.to.empty() ? transfer_result{} : move(device, behind.to, behind.from, 0);
    }
    if (moved != nullptr && device.turn.used_up()) {
        return {outcome::part_done, access_fault::none};
    }
    if (const auto whole_to = whole_in_one(device, to, length)) {
        if (const auto whole_from = whole_in_one(device, from, length)) {
            device.memory.counts.translation_pieces += translated(to) + translated(from);
            return moved != nullptr ? move_part(device, *whole_to, *whole_from, behind, *moved)
                                    : move_whole(device, *whole_to, *whole_from, behind);
        }
    }
    side_walk to_walk(device, to, before, length - before);
    side_walk from_walk(device, from, before, length - before);
    pair_batch batch(device, moved);
    return move_in_pairs(to_walk, from_walk, length - before, behind, batch);
}

} // namespace ucxl::softhca

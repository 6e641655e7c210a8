// The sides of collective calls as MPI names them, and the packed bytes that take their places.
//
//     one_block sent{buffer, count, type};
//     packed from(sent);                          // empty: its arguments are the caller's
//     from.take(number_of_blocks, direction::send);
//     from.pack();
//     std::apply(PMPI_..., from.arguments());     // those of the packed bytes, unless MPI shall work on the buffer
//
// The two sides of a call do not depend on each other.
#pragma once

#include "call.h"
#include "packed_side.h"
#include "settings.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace ucxl::mpi
{

inline bool takes_collectives()
{
    return settings::get().takes_collectives;
}

inline bool is_taken(MPI_Datatype type)
{
    return find_known(type) != nullptr && takes_collectives();
}

// The other side of calls with one buffer.
struct no_side {
    bool is_taken() const { return false; }
    std::tuple<> arguments() const { return {}; }
};

// One block, or the same number of elements for each process.
template <typename Buffer, typename Count>
struct one_block {
    Buffer buffer;
    Count count;
    MPI_Datatype type;

    bool is_taken() const { return mpi::is_taken(type); }
    std::tuple<Buffer, Count, MPI_Datatype> arguments() const { return {buffer, count, type}; }
};

// A block for each process, displaced by extents of the datatype: the calls with a v.
template <typename Buffer, typename Count, typename Place>
struct blocks {
    Buffer buffer;
    const Count* counts;
    const Place* places;
    MPI_Datatype type;

    bool is_taken() const { return mpi::is_taken(type); }
    std::tuple<Buffer, const Count*, const Place*, MPI_Datatype> arguments() const
    {
        return {buffer, counts, places, type};
    }
};

// A block for each process with a datatype of its own, displaced by bytes: the calls with a w.
template <typename Buffer, typename Count, typename Place>
struct typed_blocks {
    Buffer buffer;
    const Count* counts;
    const Place* places;
    const MPI_Datatype* types;

    // Perhaps: only the call knows how many datatypes there are.
    bool is_taken() const { return !known_types.is_empty() && takes_collectives(); }
    std::tuple<Buffer, const Count*, const Place*, const MPI_Datatype*> arguments() const
    {
        return {buffer, counts, places, types};
    }
};

inline std::byte* first_byte(const void* buffer)
{
    return static_cast<std::byte*>(const_cast<void*>(buffer));
}

// What packed sides of all kinds do with their bytes. One that is left to MPI has none, and does nothing.
class packed_bytes
{
public:
    // What has to be there when MPI begins: all that is sent, and what was kept of the side that receives.
    void pack() const
    {
        if (_side && _first < _end) {
            _side->pack_some(_block, _first, _end - _first);
        } else if (_side && _packs_all) {
            _side->pack();
        }
    }
    void unpack() const
    {
        if (is_received()) {
            _side->unpack();
        }
    }
    bool is_empty() const { return !_side; }
    bool is_received() const { return _side && _way == direction::receive; }
    // MPI reads, or leaves, what the receive buffer has.
    void keep_all() { _packs_all = true; }

protected:
    void set(std::optional<packed_side>&& side, direction way)
    {
        _side      = std::move(side);
        _way       = way;
        _packs_all = way == direction::send;
    }
    // The same of some elements of one block.
    void keep(std::size_t block, MPI_Count first, MPI_Count count)
    {
        _block = block;
        _first = first;
        _end   = first + count;
    }

    std::optional<packed_side> _side;

private:
    direction _way     = direction::send;
    bool _packs_all    = false;
    std::size_t _block = 0;
    MPI_Count _first = 0, _end = 0;
};

template <typename Side>
class packed;

template <>
class packed<no_side> : public packed_bytes
{
public:
    explicit packed(no_side /*own*/) {}
    std::tuple<> arguments() const { return {}; }
};

template <typename Buffer, typename Count>
class packed<one_block<Buffer, Count>> : public packed_bytes
{
public:
    explicit packed(const one_block<Buffer, Count>& own) : _own(own) {}

    void take(std::size_t number, direction way) noexcept
    {
        const auto count = static_cast<MPI_Count>(_own.count) * static_cast<MPI_Count>(number);
        set(packed_side::of(_own.buffer, count, _own.type, way), way);
    }
    // The part of one process is there already.
    void keep_block(int rank) { keep(0, rank * static_cast<MPI_Count>(_own.count), _own.count); }

    auto arguments() const
    {
        return _side ? one_block<Buffer, Count>{_side->data(), _own.count, _side->type(0)}.arguments()
                     : _own.arguments();
    }

private:
    one_block<Buffer, Count> _own;
};

template <typename Buffer, typename Count, typename Place>
class packed<blocks<Buffer, Count, Place>> : public packed_bytes
{
public:
    explicit packed(const blocks<Buffer, Count, Place>& own) : _own(own) {}

    void take(std::size_t number, direction way) noexcept
    {
        known_type* const known = find_known(_own.type);
        const auto layout       = known == nullptr ? nullptr : known->layout();
        if (layout == nullptr || _own.counts == nullptr || _own.places == nullptr) {
            return;
        }
        try {
            std::vector<element_block> list;
            MPI_Count elements = 0;
            for (std::size_t i = 0; i < number; ++i) {
                const MPI_Count distance = static_cast<MPI_Count>(_own.places[i]) * layout->extent;
                list.push_back({first_byte(_own.buffer) + distance, static_cast<MPI_Count>(_own.counts[i]), _own.type});
                _places.push_back(static_cast<Place>(elements));
                elements += _own.counts[i];
                if (elements > std::numeric_limits<Place>::max()) {
                    return;
                }
            }
            set(packed_side::of(list, way), way);
            _type = known->packed_type();
        } catch (const std::bad_alloc&) {
            return;
        }
    }
    void keep_block(int rank) { keep(static_cast<std::size_t>(rank), 0, _side ? _own.counts[rank] : 0); }

    auto arguments() const
    {
        return _side ? blocks<Buffer, Count, Place>{_side->data(), _own.counts, _places.data(), _type}.arguments()
                     : _own.arguments();
    }

private:
    blocks<Buffer, Count, Place> _own;
    std::vector<Place> _places;
    MPI_Datatype _type = MPI_DATATYPE_NULL;
};

template <typename Buffer, typename Count, typename Place>
class packed<typed_blocks<Buffer, Count, Place>> : public packed_bytes
{
public:
    explicit packed(const typed_blocks<Buffer, Count, Place>& own) : _own(own) {}

    void take(std::size_t number, direction way) noexcept
    {
        if (_own.counts == nullptr || _own.places == nullptr || _own.types == nullptr ||
            std::none_of(_own.types, _own.types + number, find_known)) {
            return;
        }
        try {
            std::vector<element_block> list;
            for (std::size_t i = 0; i < number; ++i) {
                list.push_back(
                    {first_byte(_own.buffer) + _own.places[i], static_cast<MPI_Count>(_own.counts[i]), _own.types[i]});
            }
            auto side = packed_side::of(list, way);
            if (!side || side->length() > std::numeric_limits<Place>::max()) {
                return;
            }
            for (std::size_t i = 0; i < number; ++i) {
                _places.push_back(static_cast<Place>(side->offset(i)));
                _types.push_back(side->type(i));
            }
            set(std::move(side), way);
        } catch (const std::bad_alloc&) {
            return;
        }
    }

    auto arguments() const
    {
        return _side ? typed_blocks<Buffer, Count, Place>{_side->data(), _own.counts, _places.data(), _types.data()}
                           .arguments()
                     : _own.arguments();
    }

private:
    typed_blocks<Buffer, Count, Place> _own;
    std::vector<Place> _places;
    std::vector<MPI_Datatype> _types;
};

} // namespace ucxl::mpi

// The sides of collective calls as MPI names them, and the packed bytes that take their places.
//
// A side that is left to MPI is empty: it packs and unpacks nothing, and its `..._or` functions return the caller's
// argument. The two sides of a call do not depend on each other.
#pragma once

#include "call.h"
#include "packed_side.h"
#include "settings.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <optional>
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

// One block, or the same number of elements for each process.
template <typename Count>
struct one_block {
    void* buffer;
    Count count;
    MPI_Datatype type;

    one_block<MPI_Count> times(std::size_t number) const
    {
        return {buffer, static_cast<MPI_Count>(count) * static_cast<MPI_Count>(number), type};
    }
};

// A block for each process, displaced by extents of the datatype: the calls with a v.
template <typename Count, typename Place>
struct blocks {
    void* buffer;
    const Count* counts;
    const Place* places;
    MPI_Datatype type;
};

// A block for each process with a datatype of its own, displaced by bytes: the calls with a w.
template <typename Count, typename Place>
struct typed_blocks {
    void* buffer;
    const Count* counts;
    const Place* places;
    const MPI_Datatype* types;
};

class packed_block
{
public:
    packed_block() = default;
    template <typename Count>
    packed_block(const one_block<Count>& whole, direction way) noexcept
        : _side(packed_side::of(whole.buffer, whole.count, whole.type, way))
    {
    }

    void* buffer_or(const void* own) const { return _side ? _side->data() : const_cast<void*>(own); }
    MPI_Datatype type_or(MPI_Datatype own) const { return _side ? _side->type(0) : own; }

    void pack() const
    {
        if (_side) {
            _side->pack();
        }
    }
    void pack_some(MPI_Count first, MPI_Count count) const
    {
        if (_side) {
            _side->pack_some(first, count);
        }
    }
    void unpack() const
    {
        if (_side) {
            _side->unpack();
        }
    }

private:
    std::optional<packed_side> _side;
};

template <typename Count, typename Place>
class packed_blocks
{
public:
    packed_blocks() = default;
    packed_blocks(const blocks<Count, Place>& all, std::size_t number, direction way) noexcept
    {
        known_type* const known = find_known(all.type);
        const auto layout       = known == nullptr ? nullptr : known->layout();
        if (layout == nullptr || all.counts == nullptr || all.places == nullptr) {
            return;
        }
        try {
            std::vector<element_block> list;
            MPI_Count elements = 0;
            for (std::size_t i = 0; i < number; ++i) {
                const MPI_Count distance = static_cast<MPI_Count>(all.places[i]) * layout->extent;
                list.push_back(
                    {static_cast<std::byte*>(all.buffer) + distance, static_cast<MPI_Count>(all.counts[i]), all.type});
                _places.push_back(static_cast<Place>(elements));
                elements += all.counts[i];
                if (elements > std::numeric_limits<Place>::max()) {
                    return;
                }
            }
            _side = packed_side::of(list, way);
            _type = known->packed_type();
        } catch (const std::bad_alloc&) {
            _side.reset();
        }
    }

    void* buffer_or(const void* own) const { return _side ? _side->data() : const_cast<void*>(own); }
    const Place* places_or(const Place* own) const { return _side ? _places.data() : own; }
    MPI_Datatype type_or(MPI_Datatype own) const { return _side ? _type : own; }

    void pack() const
    {
        if (_side) {
            _side->pack();
        }
    }
    void pack_block(int block) const
    {
        if (_side) {
            _side->pack_block(static_cast<std::size_t>(block));
        }
    }
    void unpack() const
    {
        if (_side) {
            _side->unpack();
        }
    }

private:
    std::optional<packed_side> _side;
    std::vector<Place> _places;
    MPI_Datatype _type = MPI_DATATYPE_NULL;
};

template <typename Count, typename Place>
class packed_typed_blocks
{
public:
    packed_typed_blocks() = default;
    packed_typed_blocks(const typed_blocks<Count, Place>& all, std::size_t number, direction way) noexcept
    {
        if (all.counts == nullptr || all.places == nullptr || all.types == nullptr ||
            std::none_of(all.types, all.types + number, find_known)) {
            return;
        }
        try {
            std::vector<element_block> list;
            for (std::size_t i = 0; i < number; ++i) {
                list.push_back({static_cast<std::byte*>(all.buffer) + all.places[i],
                                static_cast<MPI_Count>(all.counts[i]), all.types[i]});
            }
            auto side = packed_side::of(list, way);
            if (!side || side->length() > std::numeric_limits<Place>::max()) {
                return;
            }
            for (std::size_t i = 0; i < number; ++i) {
                _places.push_back(static_cast<Place>(side->offset(i)));
                _types.push_back(side->type(i));
            }
            _side = std::move(side);
        } catch (const std::bad_alloc&) {
            _side.reset();
        }
    }

    void* buffer_or(const void* own) const { return _side ? _side->data() : const_cast<void*>(own); }
    const Place* places_or(const Place* own) const { return _side ? _places.data() : own; }
    const MPI_Datatype* types_or(const MPI_Datatype* own) const { return _side ? _types.data() : own; }

    void pack() const
    {
        if (_side) {
            _side->pack();
        }
    }
    void unpack() const
    {
        if (_side) {
            _side->unpack();
        }
    }

private:
    std::optional<packed_side> _side;
    std::vector<Place> _places;
    std::vector<MPI_Datatype> _types;
};

} // namespace ucxl::mpi

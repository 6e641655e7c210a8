// The sides of collective calls as MPI names them, and the packed bytes that take their places.
//
//     one_block sent{buffer, count, type};
//     packed from(sent);                          // empty: its arguments are the caller's
//     from.take(number_of_blocks, each_block(usage::reads));
//     from.pack();
//     std::apply(PMPI_..., from.arguments());     // those of the packed bytes, unless MPI shall work on the buffer
//
// In the place of packed bytes there may be a window, where MPI only sends and receives (side_window.h). The two sides
// of a call do not depend on each other, but for what a process sends to itself (own_part).
#pragma once

#include "call.h"
#include "library.h"
#include "one_pass.h"
#include "packed_side.h"
#include "peers.h"
#include "settings.h"
#include "side_window.h"
#include "ucp_datatypes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
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

// Perhaps: whether the side counts at all, and what is known of its datatype, is found out by the call.
inline bool may_be_taken(MPI_Datatype type)
{
    return !own_types::has(type) && takes_collectives();
}

// The same of a datatype of MPI itself, whose elements may go in one pass only (side_window.h).
inline bool may_be_shown(MPI_Count count)
{
    return count >= one_pass::min_count() && one_pass::takes_collectives();
}

// The other side of calls with one buffer.
struct no_side {
    bool may_be_taken() const { return false; }
    std::tuple<> arguments() const { return {}; }
};

// One block, or the same number of elements for each process.
template <typename Buffer, typename Count>
struct one_block {
    Buffer buffer;
    Count count;
    MPI_Datatype type;

    bool may_be_taken() const { return mpi::may_be_taken(type) || may_be_shown(count); }
    std::tuple<Buffer, Count, MPI_Datatype> arguments() const { return {buffer, count, type}; }
};

// A block for each process, displaced by extents of the datatype: the calls with a v.
template <typename Buffer, typename Count, typename Place>
struct blocks {
    Buffer buffer;
    const Count* counts;
    const Place* places;
    MPI_Datatype type;

    // Only the call knows how many counts there are.
    bool may_be_taken() const { return mpi::may_be_taken(type) || may_be_shown(one_pass::min_count()); }
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

    // Only the call knows how many datatypes there are.
    bool may_be_taken() const { return library::is_active() && takes_collectives(); }
    std::tuple<Buffer, const Count*, const Place*, const MPI_Datatype*> arguments() const
    {
        return {buffer, counts, places, types};
    }
};

inline std::byte* first_byte(const void* buffer)
{
    return static_cast<std::byte*>(const_cast<void*>(buffer));
}

// What MPI does with the blocks of a side: a function of their index.
inline auto each_block(usage use)
{
    return [use](std::size_t /*index*/) { return use; };
}
constexpr std::size_t no_block = SIZE_MAX;
inline auto each_block_but(std::size_t one, usage use_of_one, usage use)
{
    return [=](std::size_t index) { return index == one ? use_of_one : use; };
}

// What packed sides of all kinds do with their bytes. One that is left to MPI has none, and does nothing.
class packed_bytes
{
public:
    // What MPI reads has to be there when it begins.
    void pack() const
    {
        if (_side) {
            _side->pack();
        }
    }
    void pack_if_readable() const
    {
        if (_side) {
            _side->pack_if_readable();
        }
    }
    void pack_updated() const
    {
        if (_is_received) {
            _side->pack_updated();
        }
    }
    void unpack() const
    {
        if (_is_received) {
            _side->unpack();
        }
    }
    bool is_empty() const { return !_side && !_window; }
    bool is_shown() const { return _window.has_value(); }
    bool is_received() const { return _is_received; }
    // MPI works on the caller's buffer after all.
    void leave()
    {
        _side.reset();
        _window.reset();
        _is_received = false;
    }

    void expect_starts(MPI_Count starts) { _starts = starts; }
    // MPI does nothing with the blocks but to send or to receive them. Then Open MPI's messages by layouts
    // (ucp_datatypes.h) are faster than packing the whole block first: pieces are packed while others are on the way.
    // If the communicator allows it, long blocks in the heap are shown by a window first of all.
    void expect_messages_only(bool may_be_shown)
    {
        _left           = left_to_messages::all;
        _is_shown_first = may_be_shown;
    }
    // The same for what a process sends to others; what it sends to itself the library copies.
    void expect_messages_and_own_part() { _left = left_to_messages::with_own_part; }

protected:
    // What is known of the datatype of elements that this call uses. Null if they need not be packed.
    known_type* find(MPI_Datatype type, MPI_Count count) const
    {
        known_type* const known = find_used(type, count < std::numeric_limits<int>::max() ? _starts * count : count);
        return known != nullptr && is_left(*known) ? nullptr : known;
    }
    // Blocks of which MPI uses at least one.
    bool set(const std::vector<element_block>& blocks)
    {
        usage all = usage::none;
        for (const element_block& each : blocks) {
            all = each.count == 0 ? all
                                  : static_cast<usage>(static_cast<unsigned>(all) | static_cast<unsigned>(each.use));
        }
        if (all == usage::none) {
            return false;
        }
        _side        = packed_side::of(blocks);
        _is_received = _side && has(all, usage::updates);
        return _side.has_value();
    }

    // The same by a window, with so many messages of each block.
    bool set_window(const std::vector<element_block>& blocks, std::size_t messages)
    {
        _window = side_window::of(blocks, messages);
        return _window.has_value();
    }
    bool may_show() const { return _left != left_to_messages::none && one_pass::takes_collectives(); }
    bool is_shown_first() const { return _is_shown_first; }

    // What follows is of a side that is not empty.
    std::byte* data() const { return _window ? _window->data() : _side->data(); }
    MPI_Count length() const { return _window ? _window->length() : _side->length(); }
    MPI_Count offset(std::size_t index) const { return _window ? _window->offset(index) : _side->offset(index); }
    MPI_Datatype type(std::size_t index) const { return _window ? _window->type(index) : _side->type(index); }

private:
    enum class left_to_messages : unsigned char { none, with_own_part, all };

    bool is_left(known_type& known) const
    {
        return (_left == left_to_messages::all && known.layout_context() != nullptr) ||
               (_left == left_to_messages::with_own_part &&
                (known.layout_context() != nullptr || known.is_fast_in_engine()));
    }

    std::optional<packed_side> _side;
    std::optional<side_window> _window;
    bool _is_received      = false;
    bool _is_shown_first   = false;
    left_to_messages _left = left_to_messages::none;
    MPI_Count _starts      = 1;
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

    template <typename Use>
    void show(std::size_t number, Use use_of_block) noexcept
    try {
        if (!may_show() || number == 0) {
            return;
        }
        for (std::size_t i = 1; i < number; ++i) {
            if (use_of_block(i) != use_of_block(0)) {
                return;
            }
        }
        element_block all = element(0, use_of_block(0));
        all.count *= static_cast<MPI_Count>(number);
        if (set_window({all}, number)) {
            _type = type(0);
        }
    } catch (const std::bad_alloc&) {
        leave();
    }
    template <typename Use>
    void take(std::size_t number, Use use_of_block) noexcept
    {
        if (is_shown_first()) {
            show(number, use_of_block);
        }
        if (is_shown()) {
            return;
        }
        const auto count        = static_cast<MPI_Count>(_own.count);
        known_type* const known = find(_own.type, count * static_cast<MPI_Count>(number));
        const auto layout       = known == nullptr ? nullptr : known->layout();
        if (layout == nullptr) {
            return;
        }
        try {
            // Neighbours with the same use are one block.
            std::vector<element_block> list;
            for (std::size_t i = 0; i < number; ++i) {
                const usage use = use_of_block(i);
                if (list.empty() || list.back().use != use) {
                    const MPI_Count distance = static_cast<MPI_Count>(i) * count * layout->extent;
                    list.push_back({first_byte(_own.buffer) + distance, 0, _own.type, use});
                }
                list.back().count += count;
            }
            if (set(list)) {
                _type = known->packed_type();
            }
        } catch (const std::bad_alloc&) {
            return;
        }
    }

    bool has_blocks() const { return true; }
    element_block element(std::size_t /*index*/, usage use) const
    {
        return {first_byte(_own.buffer), static_cast<MPI_Count>(_own.count), _own.type, use};
    }
    void prepare_to_leave_out(std::size_t /*number*/) {}
    void leave_out(std::size_t /*index*/) { _own.count = 0; }

    auto arguments() const
    {
        return is_empty() ? _own.arguments() : one_block<Buffer, Count>{data(), _own.count, _type}.arguments();
    }

private:
    one_block<Buffer, Count> _own;
    MPI_Datatype _type = MPI_DATATYPE_NULL;
};

template <typename Buffer, typename Count, typename Place>
class packed<blocks<Buffer, Count, Place>> : public packed_bytes
{
public:
    explicit packed(const blocks<Buffer, Count, Place>& own) : _own(own) {}

    template <typename Use>
    void show(std::size_t number, Use use_of_block) noexcept
    try {
        if (!may_show() || !has_blocks()) {
            return;
        }
        const auto list = elements(number, use_of_block);
        if (set_window(list, 1)) {
            set_places(list);
        }
    } catch (const std::bad_alloc&) {
        leave();
    }
    template <typename Use>
    void take(std::size_t number, Use use_of_block) noexcept
    {
        if (is_shown_first()) {
            show(number, use_of_block);
        }
        if (is_shown() || _own.counts == nullptr || _own.places == nullptr) {
            return;
        }
        known_type* const known = find(_own.type, std::accumulate(_own.counts, _own.counts + number, MPI_Count{0}));
        if (known == nullptr || known->layout() == nullptr) {
            return;
        }
        try {
            const auto list = elements(number, use_of_block);
            if (set(list)) {
                set_places(list);
            }
        } catch (const std::bad_alloc&) {
            leave();
        }
    }
    bool has_blocks() const
    {
        return _own.counts != nullptr && _own.places != nullptr && _own.type != MPI_DATATYPE_NULL;
    }
    element_block element(std::size_t index, usage use) const
    {
        MPI_Count lb = 0, extent = 0;
        PMPI_Type_get_extent_x(_own.type, &lb, &extent);
        return {first_byte(_own.buffer) + static_cast<MPI_Count>(_own.places[index]) * extent,
                static_cast<MPI_Count>(_own.counts[index]), _own.type, use};
    }
    // Throws std::bad_alloc.
    void prepare_to_leave_out(std::size_t number)
    {
        _counts.assign(_own.counts, _own.counts + number);
        _own.counts = _counts.data();
    }
    void leave_out(std::size_t index) { _counts[index] = 0; }

    auto arguments() const
    {
        return is_empty() ? _own.arguments()
                          : blocks<Buffer, Count, Place>{data(), _own.counts, _places.data(), _type}.arguments();
    }

private:
    template <typename Use>
    std::vector<element_block> elements(std::size_t number, Use use_of_block) const
    {
        MPI_Count lb = 0, extent = 0;
        PMPI_Type_get_extent_x(_own.type, &lb, &extent);
        std::vector<element_block> list;
        list.reserve(number);
        for (std::size_t i = 0; i < number; ++i) {
            list.push_back({first_byte(_own.buffer) + static_cast<MPI_Count>(_own.places[i]) * extent,
                            static_cast<MPI_Count>(_own.counts[i]), _own.type, use_of_block(i)});
        }
        return list;
    }
    // Of a list with a block that MPI uses. Throws std::bad_alloc.
    void set_places(const std::vector<element_block>& list)
    {
        MPI_Count size = 0;
        PMPI_Type_size_x(_own.type, &size);
        if (length() / size > std::numeric_limits<Place>::max()) {
            leave();
            return;
        }
        std::vector<Place> places;
        for (std::size_t i = 0; i < list.size(); ++i) {
            places.push_back(static_cast<Place>(offset(i) / size));
        }
        _places = std::move(places);
        _type   = type(static_cast<std::size_t>(std::ranges::find_if(list, &element_block::is_used) - list.begin()));
    }

    blocks<Buffer, Count, Place> _own;
    std::vector<Count> _counts;
    std::vector<Place> _places;
    MPI_Datatype _type = MPI_DATATYPE_NULL;
};

template <typename Buffer, typename Count, typename Place>
class packed<typed_blocks<Buffer, Count, Place>> : public packed_bytes
{
public:
    explicit packed(const typed_blocks<Buffer, Count, Place>& own) : _own(own) {}

    template <typename Use>
    void show(std::size_t number, Use use_of_block) noexcept
    try {
        if (!may_show() || !has_blocks()) {
            return;
        }
        const auto list = elements(number, use_of_block);
        if (set_window(list, 1)) {
            set_places(number);
        }
    } catch (const std::bad_alloc&) {
        leave();
    }
    template <typename Use>
    void take(std::size_t number, Use use_of_block) noexcept
    {
        if (is_shown_first()) {
            show(number, use_of_block);
        }
        if (is_shown() || !has_blocks()) {
            return;
        }
        bool has_known = false;
        for (std::size_t i = 0; i < number; ++i) {
            // Of no elements the datatype need not be one.
            const bool is_used = use_of_block(i) != usage::none && _own.counts[i] != 0;
            has_known =
                (is_used && find(_own.types[i], static_cast<MPI_Count>(_own.counts[i])) != nullptr) || has_known;
        }
        if (!has_known) {
            return;
        }
        try {
            if (set(elements(number, use_of_block))) {
                set_places(number);
            }
        } catch (const std::bad_alloc&) {
            leave();
        }
    }

    bool has_blocks() const { return _own.counts != nullptr && _own.places != nullptr && _own.types != nullptr; }
    element_block element(std::size_t index, usage use) const
    {
        return {first_byte(_own.buffer) + _own.places[index], static_cast<MPI_Count>(_own.counts[index]),
                _own.types[index], use};
    }
    // Throws std::bad_alloc.
    void prepare_to_leave_out(std::size_t number)
    {
        _counts.assign(_own.counts, _own.counts + number);
        _own.counts = _counts.data();
    }
    void leave_out(std::size_t index) { _counts[index] = 0; }

    auto arguments() const
    {
        return is_empty()
                   ? _own.arguments()
                   : typed_blocks<Buffer, Count, Place>{data(), _own.counts, _places.data(), _types.data()}.arguments();
    }

private:
    template <typename Use>
    std::vector<element_block> elements(std::size_t number, Use use_of_block) const
    {
        std::vector<element_block> list;
        list.reserve(number);
        for (std::size_t i = 0; i < number; ++i) {
            // Of a block that MPI does not use, not even the datatype counts.
            list.push_back(element(i, use_of_block(i)));
            list.back().count = list.back().use == usage::none ? 0 : list.back().count;
        }
        return list;
    }
    // Throws std::bad_alloc.
    void set_places(std::size_t number)
    {
        if (length() > std::numeric_limits<Place>::max()) {
            leave();
            return;
        }
        std::vector<Place> places;
        std::vector<MPI_Datatype> types;
        for (std::size_t i = 0; i < number; ++i) {
            places.push_back(static_cast<Place>(offset(i)));
            types.push_back(type(i));
        }
        _places = std::move(places);
        _types  = std::move(types);
    }

    typed_blocks<Buffer, Count, Place> _own;
    std::vector<Count> _counts;
    std::vector<Place> _places;
    std::vector<MPI_Datatype> _types;
};

// Calls with a block for each process, of which no other process knows: all that MPI can do is to send and receive.
template <typename Side>
inline constexpr bool has_blocks_of_each = false;
template <typename Buffer, typename Count, typename Place>
inline constexpr bool has_blocks_of_each<blocks<Buffer, Count, Place>> = true;
template <typename Buffer, typename Count, typename Place>
inline constexpr bool has_blocks_of_each<typed_blocks<Buffer, Count, Place>> = true;

// What this process sends to itself. Where Open MPI's messages go by layouts (ucp_datatypes.h), its engine still copies
// that part, up to ten times as slowly. So the library does, and MPI is told of no elements; no other process can see
// that.
class own_part
{
public:
    // If a window shows one of the sides, MPI must not copy it. If it has to, no window shows them.
    template <typename From, typename Into>
    void take_of_shown(From& from, Into& into, const peers& others) noexcept
    {
        if ((from.is_shown() || into.is_shown()) && !leave_out(from, into, others, packed_side::pairs::all)) {
            from.leave();
            into.leave();
        }
    }
    // Of sides that were left to MPI. Does nothing if MPI shall copy it.
    template <typename From, typename Into>
    void take(From& from, Into& into, const peers& others) noexcept
    {
        if (!_pair && ucp_datatypes::are_used() && from.is_empty() && into.is_empty()) {
            leave_out(from, into, others, packed_side::pairs::worth_it);
        }
    }
    bool is_empty() const { return !_pair; }
    void copy() const
    {
        if (_pair) {
            _pair->copy();
        }
    }

private:
    template <typename From, typename Into>
    bool leave_out(From& from, Into& into, const peers& others, packed_side::pairs taken) noexcept
    {
        if (others.has_two_groups || !from.has_blocks() || !into.has_blocks()) {
            return false;
        }
        const std::size_t own = others.own_block();
        const auto sent       = from.element(own, usage::reads);
        const auto received   = into.element(own, usage::updates);
        if (taken == packed_side::pairs::worth_it && !is_worth_it(sent, received)) {
            return false;
        }
        try {
            from.prepare_to_leave_out(others.number);
            into.prepare_to_leave_out(others.number);
        } catch (const std::bad_alloc&) {
            return false;
        }
        _pair = packed_side::pair(sent, received, taken);
        if (_pair) {
            from.leave_out(own);
            into.leave_out(own);
        }
        return _pair.has_value();
    }
    // Of one block it is not, nor of datatypes with which MPI is as fast.
    static bool is_worth_it(const element_block& sent, const element_block& received)
    {
        return !(is_contiguous(sent) && is_contiguous(received)) && !is_fast_in_engine(sent.type) &&
               !is_fast_in_engine(received.type);
    }
    static bool is_contiguous(const element_block& elements)
    {
        known_type* const known = find_known(elements.type);
        const auto layout       = known == nullptr ? nullptr : known->layout();
        return known == nullptr ||
               (layout != nullptr && layout->is_block && (elements.count == 1 || layout->extent == layout->size));
    }
    static bool is_fast_in_engine(MPI_Datatype type)
    {
        known_type* const known = find_known(type);
        return known != nullptr && known->is_fast_in_engine();
    }

    std::optional<packed_side> _pair;
};

} // namespace ucxl::mpi

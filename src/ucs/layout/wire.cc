#include "wire.h"

#include "checked.h"
#include "layout_builder.h"
#include "normalise.h"
#include "wire_encode.h"

#include <bit>
#include <cstring>
#include <format>

namespace ucxl
{

namespace
{

// Numbers are written as whole words, where there is room for what follows them anyway.
struct writer {
    std::byte* at;
    const std::byte* end;

    void put(std::uint64_t bytes, unsigned count)
    {
        if (std::endian::native == std::endian::little && end - at >= 8) {
            std::memcpy(at, &bytes, 8);
            at += count;
            return;
        }
        for (; count > 0; --count, bytes >>= 8) {
            *at++ = static_cast<std::byte>(bytes);
        }
    }
};

struct comparer {
    std::span<const std::byte> expected;
    std::size_t at = 0;
    bool is_equal  = true;

    void put(std::uint64_t bytes, unsigned count)
    {
        for (; count > 0; --count, bytes >>= 8, ++at) {
            is_equal = is_equal && at < expected.size() && expected[at] == static_cast<std::byte>(bytes);
        }
    }
};

std::unexpected<error> malformed(std::size_t at, const char* reason)
{
    return fail(errc::malformed, std::format("wire form, byte {}: {}", at, reason));
}

// Values are checked where they are used. `failed` means that the input ended or a number was malformed.
class parser
{
public:
    explicit parser(std::span<const std::byte> from) : _from(from) {}

    result<layout_ptr> run()
    {
        std::uint64_t num_nodes, num_entries;
        UCXL_TRY(header());
        // Each node and entry takes some bytes of the input, so no allocation exceeds a multiple of the input's length.
        if (!number(num_nodes) || !number(num_entries) || num_nodes > limits::max_entries + 1 ||
            num_entries > limits::max_entries || num_nodes > left() || num_entries > left() / 3) {
            return malformed(_at, "more nodes or entries than bytes, or than max_entries");
        }
        placed root;
        std::uint64_t source = 0, offset = 0;
        if (num_nodes > 0) {
            if (!number(source) || !number(offset) || source >= limits::max_sources ||
                !checked::is_offset(wire::unzigzag(offset))) {
                return malformed(_at, "root source or offset");
            }
            root = {static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(num_nodes - 1),
                    wire::unzigzag(offset)};
        }
        for (std::uint64_t i = 0; i < num_nodes; ++i) {
            UCXL_TRY(node(i));
        }
        return finish(root);
    }

    std::size_t consumed() const { return _at; }

private:
    std::size_t left() const { return _from.size() - _at; }

    result<void> header()
    {
        if (left() < 4 || byte() != wire::magic[0] || byte() != wire::magic[1]) {
            return malformed(0, "not a layout");
        }
        const std::uint8_t version = byte();
        if (version != wire::version) {
            return fail(errc::unsupported, std::format("wire form: version {}, known is {}", version, wire::version));
        }
        _flags = byte();
        if ((_flags & ~wire::flag_has_bounds) != 0) {
            return malformed(3, "unknown flags");
        }
        return {};
    }

    std::uint8_t byte() { return std::to_integer<std::uint8_t>(_from[_at++]); }

    bool number(std::uint64_t& value)
    {
        value = 0;
        for (unsigned shift = 0; shift < 64 && left() > 0; shift += 7) {
            const std::uint8_t next = byte();
            if (shift == 63 && next > 1) {
                return false;
            }
            value |= std::uint64_t{next & 0x7fu} << shift;
            if (next < 0x80) {
                return next != 0 || shift == 0;
            }
        }
        return false;
    }

    bool difference(std::int64_t& value)
    {
        std::uint64_t coded;
        return number(coded) && checked::add(value, wire::unzigzag(coded), value);
    }

    result<void> node(std::uint64_t index)
    {
        std::uint64_t tag, num_items;
        if (!number(tag) || tag / 2 == 0 || tag / 2 > limits::max_length) {
            return malformed(_at, "length or count");
        }
        if (tag % 2 == 0) {
            return _nest.block(tag / 2) == index ? result<void>{} : malformed(_at, "a block twice");
        }
        if (!number(num_items) || num_items == 0 || num_items > left() / 3) {
            return malformed(_at, "number of entries");
        }
        _items.clear();
        _items.reserve(num_items);
        nest_item item;
        for (std::uint64_t i = 0; i < num_items; ++i) {
            std::uint64_t source, back;
            if (!number(source) || !number(back) || !difference(item.offset) || source >= limits::max_sources ||
                back >= index || (tag / 2 > 1 && !difference(item.stride))) {
                return malformed(_at, "entry");
            }
            item.source = static_cast<std::uint32_t>(source);
            item.node   = static_cast<std::uint32_t>(index - 1 - back);
            _items.push_back(item);
        }
        if (!is_normal(_nest, tag / 2, _items)) {
            return malformed(_at, "a loop that is not in normal form");
        }
        auto added = UCXL_TRY(_nest.loop(tag / 2, _items));
        return added == index ? result<void>{} : malformed(_at, "a loop twice");
    }

    result<void> bounds(std::vector<user_bounds>& set)
    {
        std::uint64_t num_set, source, lb, extent;
        if (!number(num_set) || num_set > limits::max_sources || num_set > left() / 3) {
            return malformed(_at, "number of bounds");
        }
        set.reserve(num_set);
        for (std::uint64_t i = 0; i < num_set; ++i) {
            if (!number(source) || !number(lb) || !number(extent) || source >= limits::max_sources ||
                (i > 0 && source <= set.back().source) || !checked::is_offset(wire::unzigzag(lb)) ||
                extent > 2 * limits::max_length) {
                return malformed(_at, "bounds of a source");
            }
            const std::int64_t low = wire::unzigzag(lb);
            set.push_back({static_cast<std::uint32_t>(source), low, low + static_cast<std::int64_t>(extent)});
        }
        return {};
    }

    result<layout_ptr> finish(const placed& root)
    {
        std::vector<user_bounds> set;
        if ((_flags & wire::flag_has_bounds) != 0) {
            UCXL_TRY(bounds(set));
        }
        auto created = UCXL_TRY(layout_builder::finish(_nest, root, set));
        // Refuses what pack_wire() never writes: unused nodes, another order, bounds that add nothing.
        comparer same{_from.first(_at)};
        wire::encode(*created, same);
        return same.is_equal && same.at == _at ? result<layout_ptr>(created)
                                               : malformed(_at, "not in the order of the normal form");
    }

    std::span<const std::byte> _from;
    std::size_t _at     = 0;
    std::uint8_t _flags = 0;
    nest _nest;
    std::vector<nest_item> _items;
};

} // namespace

std::size_t wire_length(const layout& layout)
{
    return layout.wire_length();
}

result<std::size_t> pack_wire(const layout& layout, std::span<std::byte> into)
{
    return guarded([&]() -> result<std::size_t> {
        const std::size_t length = wire_length(layout);
        if (into.size() < length) {
            return fail(errc::invalid_param,
                        std::format("wire form: {} bytes do not fit into {}", length, into.size()));
        }
        writer bytes{into.data(), into.data() + length};
        wire::encode(layout, bytes);
        return static_cast<std::size_t>(bytes.at - into.data());
    });
}

result<layout_ptr> unpack_wire(std::span<const std::byte> from, std::size_t* consumed)
{
    return guarded([&] {
        parser input(from);
        auto created = input.run();
        if (created && consumed != nullptr) {
            *consumed = input.consumed();
        }
        return created;
    });
}

} // namespace ucxl

#include "wire.h"

#include "checked.h"
#include "hash.h"
#include "layout_builder.h"
#include "normalise.h"
#include "wire_decode.h"
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

    std::byte* room(std::size_t count) const { return static_cast<std::size_t>(end - at) >= count ? at : nullptr; }
    void wrote(std::size_t count) { at += count; }

    void put(std::uint64_t bytes, unsigned count)
    {
        if (end - at >= 8) {
            wire::put_word(at, bytes);
            at += count;
            return;
        }
        for (; count > 0; --count, bytes >>= 8) {
            *at++ = static_cast<std::byte>(bytes);
        }
    }
};

std::unexpected<error> malformed(std::size_t at, const char* reason)
{
    return fail(errc::malformed, std::format("wire form, byte {}: {}", at, reason));
}

// Values are checked where they are used.
class parser
{
public:
    explicit parser(std::span<const std::byte> from) : _from(from), _in(from) {}

    result<layout_ptr> run()
    {
        std::uint64_t num_nodes, num_entries;
        UCXL_TRY(header());
        // Each node and entry takes some bytes of the input, so no allocation exceeds a multiple of the input's length.
        if (!number(num_nodes) || !number(num_entries) || num_nodes > limits::max_entries + 1 ||
            num_entries > limits::max_entries || num_nodes > left() || num_entries > left() / 3) {
            return refused("more nodes or entries than bytes, or than max_entries");
        }
        placed root;
        std::uint64_t source = 0, offset = 0;
        if (num_nodes > 0) {
            if (!number(source) || !number(offset) || source >= limits::max_sources ||
                !checked::is_offset(wire::unzigzag(offset))) {
                return refused("root source or offset");
            }
            root = {static_cast<std::uint32_t>(source), static_cast<std::uint32_t>(num_nodes - 1),
                    wire::unzigzag(offset)};
        }
        for (std::uint64_t i = 0; i < num_nodes; ++i) {
            UCXL_TRY(node(i));
        }
        if (_num_entries != num_entries) {
            return refused("another number of entries than in its header");
        }
        return finish(root);
    }

    std::size_t consumed() const { return _from.size() - left(); }

private:
    std::size_t left() const { return _in.left(); }
    std::unexpected<error> refused(const char* reason) const { return malformed(consumed(), reason); }

    result<void> header()
    {
        if (left() < 4 || _in.byte() != wire::magic[0] || _in.byte() != wire::magic[1]) {
            return malformed(0, "not a layout");
        }
        const std::uint8_t version = _in.byte();
        if (version != wire::version) {
            return fail(errc::unsupported, std::format("wire form: version {}, known is {}", version, wire::version));
        }
        _flags = _in.byte();
        if ((_flags & ~wire::flag_has_bounds) != 0) {
            return malformed(3, "unknown flags");
        }
        return {};
    }

    bool number(std::uint64_t& value) { return _in.number(value); }

    result<void> node(std::uint64_t index)
    {
        std::uint64_t tag, num_items;
        if (!number(tag) || tag / 2 == 0 || tag / 2 > limits::max_length) {
            return refused("length or count");
        }
        if (tag % 2 == 0) {
            return _nest.block(tag / 2) == index ? result<void>{} : refused("a block twice");
        }
        if (!number(num_items) || num_items == 0 || num_items > left() / 3) {
            return refused("number of entries");
        }
        std::vector<nest_item> items;
        items.reserve(num_items);
        if (!entries(index, tag / 2 > 1, num_items, items)) {
            return refused("entry");
        }
        _num_entries += num_items;
        if (!is_normal(_nest, tag / 2, items)) {
            return refused("a loop that is not in normal form");
        }
        auto added = UCXL_TRY(_nest.loop(tag / 2, std::move(items)));
        return added == index ? result<void>{} : refused("a loop twice");
    }

    bool entries(std::uint64_t node, bool has_strides, std::uint64_t count, std::vector<nest_item>& items)
    {
        wire::reader in = _in;
        nest_item item;
        for (; count > 0; --count) {
            std::uint64_t source, back, offset, stride = 0;
            if (!in.place(source, back, offset) || (has_strides && !in.number(stride)) ||
                source >= limits::max_sources || back >= node ||
                !checked::add(item.offset, wire::unzigzag(offset), item.offset) ||
                !checked::add(item.stride, wire::unzigzag(stride), item.stride)) {
                return false;
            }
            item.source = static_cast<std::uint32_t>(source);
            item.child  = static_cast<std::uint32_t>(node - 1 - back);
            items.push_back(item);
        }
        _in = in;
        return true;
    }

    result<void> bounds(std::vector<user_bounds>& set)
    {
        std::uint64_t num_set, source, lb, extent;
        if (!number(num_set) || num_set > limits::max_sources || num_set > left() / 3) {
            return refused("number of bounds");
        }
        set.reserve(num_set);
        for (std::uint64_t i = 0; i < num_set; ++i) {
            if (!number(source) || !number(lb) || !number(extent) || source >= limits::max_sources ||
                (i > 0 && source <= set.back().source) || !checked::is_offset(wire::unzigzag(lb)) ||
                extent > 2 * limits::max_length) {
                return refused("bounds of a source");
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
            if (set.empty()) {
                return refused("a flag of bounds, but no bounds");
            }
        }
        auto created =
            UCXL_TRY(layout_builder::read(std::move(_nest), root, set, hash_wire_form(_from.first(consumed()))));
        return created != nullptr ? result<layout_ptr>(created) : refused("not in the order of the normal form");
    }

    std::span<const std::byte> _from;
    wire::reader _in;
    std::uint8_t _flags = 0;
    nest _nest;
    std::uint64_t _num_entries = 0; // of the nodes read
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

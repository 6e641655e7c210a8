// The bytes are operations on a stack of descriptors; what the builders make of the top is compared with the reference
// walker.
#include "fuzz_target.h"

#include "support/spec.h"
#include "ucs/layout/text.h"
#include "ucs/layout/walk.h"
#include "ucs/layout/wire.h"

#include <algorithm>
#include <span>

using namespace ucxl;
using namespace ucxl::test;
using fuzz::require;

namespace
{

// Of the bytes of a layout, and of the elements that the slow walker visits, empty ones, too.
constexpr std::uint64_t max_cost = 4096;

class machine
{
public:
    explicit machine(std::span<const std::uint8_t> code) : _code(code) {}

    spec_ptr run()
    {
        keep_block(1 + byte() % 16);
        for (int steps = 0; !_code.is_empty() && steps < 24; ++steps) {
            step();
        }
        return _stack.back().spec;
    }

private:
    struct made_item {
        spec_ptr spec;
        std::uint64_t cost;
    };

    std::uint8_t byte() { return _code.byte(); }

    // Mostly small, seldom large, both signs.
    std::int64_t offset()
    {
        const int bits  = byte();
        const int value = bits < 128 ? bits : bits - 256;
        return value > 100 ? (value - 100) * 1000 : value < -100 ? (value + 100) * 1000 : value;
    }

    std::vector<dim> dims(std::uint64_t& times)
    {
        std::vector<dim> made(byte() % 4);
        times = 1;
        for (dim& along : made) {
            along.count  = byte() % 9;
            along.stride = offset();
            times *= along.count;
        }
        return made;
    }

    const made_item& any() const { return _stack[_stack.size() - 1 - _pick % _stack.size()]; }

    // Only what the slow walker can follow is kept.
    void keep(spec_ptr made, std::uint64_t cost)
    {
        if (cost < max_cost) {
            _stack.push_back({std::move(made), cost + 1});
        }
    }

    void keep_block(std::uint64_t length) { keep(spec::block(length), length); }

    void step()
    {
        const std::uint8_t operation = byte();
        _pick                        = operation / 8u;
        const made_item item         = any();
        std::uint64_t times;
        switch (operation % 8) {
        case 0:
        case 1:
            return keep_block(byte() % 64);
        case 2: {
            const std::uint64_t count = byte() % 16;
            return keep(spec::contig(count, item.spec), count * item.cost);
        }
        case 3:
        case 4: {
            auto along = dims(times);
            return keep(spec::strided(item.spec, std::move(along)), times * item.cost);
        }
        case 5:
            return list();
        case 6:
            return interleave();
        default: {
            const std::int64_t lb = offset();
            return keep(spec::resized(item.spec, lb, byte()), item.cost);
        }
        }
    }

    void list()
    {
        std::vector<spec_part> parts(1 + byte() % 12);
        std::uint64_t cost = 0;
        for (spec_part& part : parts) {
            const std::uint8_t how = byte();
            _pick                  = how / 4u;
            part.source            = how % 4u == 3 ? 1 : 0;
            part.item              = any().spec;
            part.offset            = offset();
            cost += any().cost;
        }
        keep(spec::iov(std::move(parts)), cost);
    }

    void interleave()
    {
        std::vector<spec_part> parts(1 + byte() % 4);
        std::uint64_t cost = 0;
        for (spec_part& part : parts) {
            const std::uint8_t how = byte();
            _pick                  = how / 16u;
            part.repeat            = 1 + how % 4u;
            part.source            = how / 4u % 4u;
            part.item              = any().spec;
            part.offset            = offset();
            std::uint64_t times;
            part.dims = dims(times);
            cost += any().cost * times;
        }
        keep(spec::interleaved(std::move(parts)), cost);
    }

    fuzz::byte_reader _code;
    std::vector<made_item> _stack;
    std::size_t _pick = 0;
};

void compare(const spec& of, const layout& made)
{
    const std::string name = to_string(of);
    const auto blocks      = segments_of(of);
    require(segments_of(made) == blocks, "blocks of " + name + ": " + to_text(made));
    require(made.blocks().count == blocks.size(), "number of blocks of " + name);
    if (!blocks.empty()) {
        const auto [shortest, longest] = std::ranges::minmax(blocks, {}, &segment::length);
        require(made.blocks().min_length == shortest.length && made.blocks().max_length == longest.length,
                "shortest or longest block of " + name);
    }
    const auto bounds = bounds_of(of);
    for (std::uint32_t source = 0; source < made.num_sources(); ++source) {
        const auto found = bounds.find(source);
        require(made.bounds(source) == (found == bounds.end() ? layout_bounds{} : found->second), "bounds of " + name);
    }
    require(made.num_sources() == num_sources_of(of) && made.extent() == extent_of(of), "sources or extent of " + name);
    const overlap expected = has_overlap(of) ? overlap::some : overlap::none;
    require(made.overlap() == overlap::maybe || made.overlap() == expected, "overlap of " + name);
}

} // namespace

UCXL_FUZZ_TARGET(layout_algebra)
{
    const spec_ptr of = machine({data, size}).run();
    auto made         = build(*of);
    if (!made) {
        require(made.error().code == errc::exceeds_limit, to_string(*of) + ": " + made.error().message);
        return 0;
    }
    compare(*of, **made);
    std::vector<std::byte> bytes(wire_length(**made));
    require(pack_wire(**made, bytes).has_value(), "pack");
    auto back = unpack_wire(bytes);
    require(back && **back == **made, "wire form of " + to_string(*of) + (back ? "" : ": " + back.error().message));
    auto read = parse_text(to_text(**made, SIZE_MAX));
    require(read && **read == **made, "text of " + to_string(*of) + ": " + to_text(**made, SIZE_MAX));
    return 0;
}

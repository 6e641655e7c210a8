// Any bytes as a wire form: refused, or a layout whose wire form is exactly these bytes and that can be walked and
// used.
#include "fuzz_target.h"

#include "ucs/layout/build.h"
#include "ucs/layout/text.h"
#include "ucs/layout/walk.h"
#include "ucs/layout/wire.h"

#include <algorithm>

using namespace ucxl;
using fuzz::require;

UCXL_FUZZ_TARGET(layout_wire)
{
    const auto bytes     = std::as_bytes(std::span(data, size));
    std::size_t consumed = 0;
    auto made            = unpack_wire(bytes, &consumed);
    if (!made) {
        require(!made.error().message.empty(), "an error says why");
        return 0;
    }
    const layout& of = **made;
    std::vector<std::byte> again(wire_length(of));
    require(pack_wire(of, again).has_value(), "a wire form can be packed");
    require(consumed <= size && std::ranges::equal(again, bytes.first(consumed)), "accepted bytes are the wire form");
    std::uint64_t length = 0, blocks = 0;
    for_each_block(of, 0, std::min<std::uint64_t>(of.packed_length(), 1 << 20), [&](const placed_block& block) {
        const layout_bounds& bounds = of.bounds(block.source);
        require(block.offset >= bounds.true_lb &&
                    block.offset + static_cast<std::int64_t>(block.length) <= bounds.true_ub,
                "block within bounds");
        length += block.length;
        return ++blocks < 4096;
    });
    block_cursor cursor(of);
    cursor.seek(of.packed_length() / 2);
    require(cursor.at_end() == of.is_empty(), "the middle is not the end");
    require(!to_text(of).empty() && !describe(of).empty(), "a layout has a text");
    auto twice = make_contig(2, {0, *made});
    require(!twice || (*twice)->packed_length() == 2 * of.packed_length(), "twice is twice as long");
    return 0;
}

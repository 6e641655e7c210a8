// Visits the blocks of a layout in packed order, from any packed offset.
//
// Example: the bytes of the layout from packed offset 100, at most 50 of them:
//     block_cursor cursor(layout);
//     cursor.seek(100);
//     for (std::uint64_t left = 50; left > 0 && !cursor.at_end(); ) { auto b = cursor.block(left); ...;
//     cursor.advance(b.length); left -= b.length; }
#pragma once

#include "layout.h"

#include <algorithm>
#include <array>
#include <type_traits>

namespace ucxl
{

struct placed_block {
    std::uint32_t source;
    std::int64_t offset;  // bytes from the base address of the source
    std::uint64_t length; // bytes
};

// The cursor refers to the layout, which must outlive it. It allocates nothing. Threads must not share one.
class block_cursor
{
public:
    explicit block_cursor(const layout& layout);

    // Takes O(depth * log entries); packed_offset <= packed_length(). At packed_length() the cursor is at its end.
    void seek(std::uint64_t packed_offset);
    bool at_end() const;
    // Returns the rest of the current block, at most max_length bytes. The cursor must not be at its end.
    placed_block block(std::uint64_t max_length = UINT64_MAX) const;
    // Moves on by `length` bytes, at most the rest of the current block.
    void advance(std::uint64_t length);

private:
    struct loop_state {
        const layout_node* node;
        std::uint64_t iteration;
        std::uint32_t entry; // index in the node
        std::uint32_t source;
        std::int64_t offset; // of the node itself
    };

    void descend(std::uint32_t child, std::uint32_t source, std::int64_t offset, std::uint64_t skip);

    const layout& _layout;
    std::array<loop_state, limits::max_depth> _levels;
    unsigned _depth = 0;
    bool _end       = true;
    placed_block _block{}; // what is left of the current block
};

// Calls fn(placed_block) for each block of [offset, offset + length), in packed order, and ends at the end of the
// layout. If fn returns bool, false stops it.
template <typename Fn>
void for_each_block(const layout& layout, std::uint64_t offset, std::uint64_t length, Fn&& fn)
{
    block_cursor cursor(layout);
    for (cursor.seek(std::min(offset, layout.packed_length())); length > 0 && !cursor.at_end();) {
        const placed_block block = cursor.block(length);
        if constexpr (std::is_same_v<std::invoke_result_t<Fn, placed_block>, bool>) {
            if (!fn(block)) {
                return;
            }
        } else {
            fn(block);
        }
        cursor.advance(block.length);
        length -= block.length;
    }
}

} // namespace ucxl

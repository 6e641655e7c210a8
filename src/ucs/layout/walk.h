// Visiting the blocks of a layout in packed order, whole or from any packed offset on.
//
// Example: bytes of source 0 from packed offset 100, at most 50 of them:
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

// Holds a reference to the layout, which must outlive it. No allocation. Not safe to share between threads.
class block_cursor
{
public:
    explicit block_cursor(const layout& of);

    // packed_offset <= packed_length(); O(depth * log entries). At packed_length() the cursor is at its end.
    void seek(std::uint64_t packed_offset);
    bool at_end() const;
    // The rest of the current block, cut to max_length. Only when !at_end().
    placed_block block(std::uint64_t max_length = UINT64_MAX) const;
    // Moves on by at most the rest of the current block.
    void advance(std::uint64_t length);

private:
    struct level {
        const layout_node* node;
        std::uint64_t iteration;
        std::uint32_t entry; // index in the node
        std::uint32_t source;
        std::int64_t offset; // of the node itself
    };

    void descend(std::uint32_t child, std::uint32_t source, std::int64_t offset, std::uint64_t skip);

    const layout& _layout;
    std::array<level, limits::max_depth> _levels;
    unsigned _depth = 0;
    bool _end       = true;
    placed_block _block{}; // what is left of the current one
};

// fn(placed_block) for every block of [offset, offset + length), in packed order. Stops early when fn returns false
// (if it returns bool). Beyond the end: nothing.
template <typename Fn>
void for_each_block(const layout& of, std::uint64_t offset, std::uint64_t length, Fn&& fn)
{
    block_cursor cursor(of);
    for (cursor.seek(std::min(offset, of.packed_length())); length > 0 && !cursor.at_end();) {
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

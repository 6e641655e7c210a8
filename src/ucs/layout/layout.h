// A layout: an immutable description of where bytes are, as a loop nest. It holds no addresses; it is applied to base
// addresses later.
//
//     node  = block{length} | loop{count, entries[]}
//     entry = {source, offset, stride, child}
//
// Packed order is the order of visiting: a loop runs `count` times and visits its entries in order each time. A block
// reached through entries e1, e2, ... at iterations i1, i2, ... covers `length` bytes from
//
//     base[e1.source + e2.source + ...] + (e1.offset + i1 * e1.stride) + (e2.offset + i2 * e2.stride) + ...
//
// A child is stored once, relative to its entry. The root is an entry that runs once.
//
// Invariant: the normal form of normalise.h. Children precede their parents in nodes(), so there are no cycles. Equal
// subtrees are one node. No node is empty, and no loop can be written as a block or a simpler loop. The empty layout
// has no nodes. Two layouts of the same bytes in the same order usually, but not always, have the same normal form.
//
// Example: column of a 1024 x 1024 matrix of doubles = loop{1024, {{0, 0, 8192, block{8}}}}.
//
// Thread safety: a layout never changes after its creation, as far as threads that share it can see. Lifetime:
// shared_ptr.
#pragma once

#include "limits.h"

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ucxl
{

struct layout_entry {
    std::uint32_t source        = 0; // added to the source of the entries above
    std::uint32_t child         = 0; // index into nodes()
    std::int64_t offset         = 0; // bytes
    std::int64_t stride         = 0; // bytes from one iteration of the loop to the next; 0 where the loop runs once
    std::uint64_t packed_offset = 0; // bytes of the entries before this one, in the same iteration

    auto operator<=>(const layout_entry&) const = default;
};

// Entries that differ in their offsets only.
inline bool same_shape(const layout_entry& a, const layout_entry& b)
{
    return a.child == b.child && a.source == b.source && a.stride == b.stride;
}

struct layout_node {
    std::uint64_t count         = 0; // iterations of a loop; 0: this is a block
    std::uint64_t cycle_length  = 0; // packed bytes of one iteration; of a block: its length
    std::uint64_t packed_length = 0; // packed bytes of all iterations
    std::uint64_t num_blocks  = 0; // of all iterations, as block_cursor returns them: touching blocks count separately
    std::uint32_t first_entry = 0; // of a loop: entries()[first_entry, first_entry + num_entries)
    std::uint32_t num_entries = 0;
    std::uint32_t depth       = 0; // loops on the longest path down, including this one; 0 for a block

    bool is_block() const { return count == 0; }
    auto operator<=>(const layout_node&) const = default;
};

// Where the bytes of one source lie, in bytes relative to its base address; ub is one past the last byte. The user may
// set lb and extent, as with MPI_Type_create_resized; the true bounds are those of the bytes.
struct layout_bounds {
    std::int64_t true_lb = 0;
    std::int64_t true_ub = 0;
    std::int64_t lb      = 0;
    std::int64_t ub      = 0;

    std::int64_t extent() const { return ub - lb; }
    // From the first byte to the last one.
    std::uint64_t true_length() const
    {
        return static_cast<std::uint64_t>(true_ub) - static_cast<std::uint64_t>(true_lb);
    }
    auto operator<=>(const layout_bounds&) const = default;
};

enum class overlap {
    none,  // proven: no byte is described twice
    some,  // proven: at least one byte is described twice
    maybe, // undecided: the check would cost more than its limit
};

// Statistics of the contiguous blocks in packed order. Exact: blocks that touch in memory and follow each other count
// as one.
struct block_stats {
    std::uint64_t count      = 0;
    std::uint64_t min_length = 0; // bytes
    std::uint64_t max_length = 0; // bytes
};

// An overlap that is looked for when somebody asks first. Threads that do so at the same time find the same.
class overlap_found_once
{
public:
    overlap_found_once() = default;
    overlap_found_once(const overlap_found_once& other) noexcept : _found(other._found.load()) {}
    overlap_found_once& operator=(const overlap_found_once& other) noexcept
    {
        _found = other._found.load();
        return *this;
    }

    template <typename Find>
    overlap get(Find&& find) const
    {
        if (!_found.load().has_value()) {
            _found = find();
        }
        return *_found.load();
    }

private:
    mutable std::atomic<std::optional<overlap>> _found{std::nullopt};
};

class layout
{
public:
    // Makes the empty layout. All others come from the builders in build.h, parse_text() and unpack_wire().
    layout() = default;

    std::uint64_t packed_length() const { return _nodes.empty() ? 0 : _nodes[_root.child].packed_length; }
    bool is_empty() const { return _nodes.empty(); }
    // The number of base addresses the layout needs: 1 + the largest source; 1 for the empty layout.
    std::uint32_t num_sources() const { return _num_sources; }
    unsigned depth() const { return _nodes.empty() ? 0 : _nodes[_root.child].depth; }
    // The layout is one block, so packed bytes and memory bytes are the same.
    bool is_contiguous() const { return _nodes.empty() || _nodes[_root.child].is_block(); }

    const layout_entry& root() const { return _root; }
    const layout_node& root_node() const { return _nodes[_root.child]; } // not for the empty layout
    std::span<const layout_node> nodes() const { return _nodes; }
    std::span<const layout_entry> entries() const { return _entries; }
    std::span<const layout_entry> entries_of(const layout_node& node) const
    {
        return std::span(_entries).subspan(node.first_entry, node.num_entries);
    }

    // source < num_sources(). All bounds of a source without bytes are 0.
    const layout_bounds& bounds(std::uint32_t source) const { return _bounds[source]; }
    // The distance from one element of this layout to the next: the largest extent of all sources.
    std::int64_t extent() const { return _extent; }
    const block_stats& blocks() const { return _blocks; }
    // Exact for strided nests, alone or together, while the search stays within max_overlap_nests and max_overlap_steps
    // (limits.h); `maybe` beyond. The search stays within them if the nests lie apart, and if each stride is larger
    // than what it repeats. Different sources count as different memory.
    // The first call looks for it, which takes memory and about as long as making the layout.
    ucxl::overlap overlap() const;

    // The hash of the content (nest, bounds, extent). Equal layouts have equal hashes, in every process and in every
    // release of this wire format.
    std::uint64_t hash() const { return _hash; }
    // Of its wire form, in bytes.
    std::size_t wire_length() const { return _wire_length; }
    bool operator==(const layout& other) const;
    // A total order of contents, by hash first: cheap unless the hashes are equal.
    std::strong_ordering operator<=>(const layout& other) const;

private:
    friend class layout_builder;

    layout_entry _root;
    std::vector<layout_node> _nodes;
    std::vector<layout_entry> _entries;
    std::vector<layout_bounds> _bounds{1};
    std::uint32_t _num_sources = 1;
    std::int64_t _extent       = 0;
    block_stats _blocks;
    overlap_found_once _overlap;
    std::uint64_t _hash      = 0;
    std::size_t _wire_length = 6; // of the empty layout
};

using layout_ptr = std::shared_ptr<const layout>;

} // namespace ucxl

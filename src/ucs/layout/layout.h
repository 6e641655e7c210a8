// A layout: an immutable description of where bytes are, as a loop nest. No addresses: it is applied to base addresses
// later.
//
//     node  = block{length} | loop{count, entries[]}
//     entry = {source, offset, stride, child}
//
// Packed order is the order of visiting: a loop runs `count` times, each time through its entries in order. A block
// reached through entries e1, e2, ... at iterations i1, i2, ... covers `length` bytes from
//
//     base[e1.source + e2.source + ...] + (e1.offset + i1 * e1.stride) + (e2.offset + i2 * e2.stride) + ...
//
// so a child is written once, relative to where it is used. The root is an entry that is run once.
//
// Invariant: normal form. Children come before their parents in nodes() (no cycles), equal subtrees are one node, no
// node is empty, a loop is never what a block or a simpler loop could say (see normalise.h). The empty layout has no
// nodes. Two layouts with the same bytes at the same places in the same order mostly, not always, have the same normal
// form.
//
// Example: column of a 1024 x 1024 matrix of doubles = loop{1024, {{0, 0, 8192, block{8}}}}.
//
// Thread safety: a layout never changes after it was made; share it freely. Lifetime: shared_ptr.
#pragma once

#include "limits.h"

#include <cstddef>
#include <cstdint>
#include <memory>
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

    bool operator==(const layout_entry&) const = default;
};

struct layout_node {
    std::uint64_t count         = 0; // iterations of a loop; 0: this is a block
    std::uint64_t cycle_length  = 0; // packed bytes of one iteration; of a block: its length
    std::uint64_t packed_length = 0; // packed bytes of all iterations
    std::uint64_t num_blocks    = 0; // of all iterations, as block_cursor gives them: touching ones not joined
    std::uint32_t first_entry   = 0; // of a loop: entries()[first_entry, first_entry + num_entries)
    std::uint32_t num_entries   = 0;
    std::uint32_t depth         = 0; // loops on the longest way down, this one included; 0 for a block

    bool is_block() const { return count == 0; }
    bool operator==(const layout_node&) const = default;
};

// Where the bytes of one source lie, relative to its base address, in bytes; ub is one past the last.
// lb and extent can be set by the user (as MPI_Type_create_resized does); the true bounds are those of the bytes.
struct layout_bounds {
    std::int64_t true_lb = 0;
    std::int64_t true_ub = 0;
    std::int64_t lb      = 0;
    std::int64_t ub      = 0;

    std::int64_t extent() const { return ub - lb; }
    bool operator==(const layout_bounds&) const = default;
};

enum class overlap {
    none,  // proven: no byte is described twice
    some,  // proven: at least one byte is described twice
    maybe, // not decided: the check would cost more than it may
};

// Of the contiguous blocks in packed order. Exact: neighbours that touch in memory are one block, wherever in the nest
// they are.
struct block_stats {
    std::uint64_t count      = 0;
    std::uint64_t min_length = 0; // bytes
    std::uint64_t max_length = 0; // bytes
};

class layout
{
public:
    // An empty layout; everything else comes from the builders in build.h, parse_text() or unpack_wire().
    layout() = default;

    std::uint64_t packed_length() const { return _nodes.empty() ? 0 : _nodes[_root.child].packed_length; }
    bool is_empty() const { return _nodes.empty(); }
    // Number of base addresses to give: 1 + the largest source (1 for the empty layout).
    std::uint32_t num_sources() const { return _num_sources; }
    unsigned depth() const { return _nodes.empty() ? 0 : _nodes[_root.child].depth; }
    // One block, wherever it is: the window's bytes are the memory's bytes.
    bool is_contiguous() const { return _nodes.empty() || _nodes[_root.child].is_block(); }

    const layout_entry& root() const { return _root; }
    const layout_node& root_node() const { return _nodes[_root.child]; } // not for the empty layout
    std::span<const layout_node> nodes() const { return _nodes; }
    std::span<const layout_entry> entries() const { return _entries; }
    std::span<const layout_entry> entries_of(const layout_node& node) const
    {
        return std::span(_entries).subspan(node.first_entry, node.num_entries);
    }

    // source < num_sources(). A source without bytes has all bounds 0.
    const layout_bounds& bounds(std::uint32_t source) const { return _bounds[source]; }
    // The distance at which a second element of this layout follows the first: the largest extent of all sources.
    std::int64_t extent() const { return _extent; }
    const block_stats& blocks() const { return _blocks; }
    // Exact for strided nests, alone or many together, as long as the search stays below max_overlap_nests and
    // max_overlap_steps of limits.h (it does for all that lies apart, and wherever each stride passes what is inside
    // it); `maybe` beyond. Different sources are taken as different memory.
    ucxl::overlap overlap() const { return _overlap; }

    // Of the content (nest, bounds, extent); equal layouts have equal hashes, in every process and release of this
    // format.
    std::uint64_t hash() const { return _hash; }
    bool operator==(const layout& other) const;

private:
    friend class layout_builder;

    layout_entry _root;
    std::vector<layout_node> _nodes;
    std::vector<layout_entry> _entries;
    std::vector<layout_bounds> _bounds{1};
    std::uint32_t _num_sources = 1;
    std::int64_t _extent       = 0;
    block_stats _blocks;
    ucxl::overlap _overlap = ucxl::overlap::none;
    std::uint64_t _hash    = 0;
};

using layout_ptr = std::shared_ptr<const layout>;

} // namespace ucxl

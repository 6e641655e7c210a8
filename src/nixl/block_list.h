// A list of blocks of memory as a layout: what NIXL calls a descriptor list.
//
// The blocks are in pieces of registered memory, the regions. Each region that occurs is a source of the layout, with
// the offsets of its blocks. So the description has no addresses, and its size depends on what is regular in the list:
// blocks that touch, equal strides and repeated patterns are a few numbers (see the normal form of layouts).
//
// Example: block_list list; list.add(region_id, offset, length); ...; auto layout = list.describe();
#pragma once

#include <ucp_layout.hpp>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ucxl::nixl
{

class block_list
{
public:
    using region_id = std::uint64_t;

    void reserve(std::size_t blocks) { _blocks.reserve(blocks); }
    // Appends a block. One that begins where the one before ends becomes a part of that; none is kept of no bytes.
    void add(region_id region, std::uint64_t offset, std::uint64_t length);

    // Has to be called with at least one byte.
    ucx_layout::result<ucx_layout::layout> describe() const { return ucx_layout::layout::concatenate(_blocks); }

    std::uint64_t length() const { return _length; }
    // The number of each source of the layout is the place of its region here.
    const std::vector<region_id>& regions() const { return _regions; }
    std::size_t num_blocks() const { return _blocks.size(); }
    // Of the first block. A list of one block needs no layout.
    std::uint64_t first_offset() const { return static_cast<std::uint64_t>(_blocks.front().offset); }

    // The same blocks in the same order. Takes long only for lists that are the same or made to look so.
    bool operator==(const block_list& other) const;

private:
    std::uint32_t source_of(region_id region);

    std::vector<ucx_layout::layout::iov> _blocks;
    std::vector<region_id> _regions;
    std::unordered_map<region_id, std::uint32_t> _sources;
    std::uint64_t _length      = 0;
    std::uint64_t _fingerprint = 0; // of what add() was called with
};

} // namespace ucxl::nixl

// What users write today instead of a window: they list the blocks once and copy every message block by block. As
// careful users do, the loops are specialised for one constant block length and for a constant distance.
//
// Invariant: the list describes memory that lives as long as this object.
#pragma once

#include "layout_image.h"

#include <cstddef>
#include <span>
#include <vector>

namespace ucxl::perf
{

class pack_loops
{
public:
    explicit pack_loops(std::span<const memory_block> blocks);

    void pack(std::byte* into) const { _pack(*this, into); }
    void unpack(const std::byte* from) const { _unpack(*this, from); }

    std::span<const memory_block> blocks() const { return _blocks; }
    std::byte* first() const { return _blocks.front().address; }
    std::size_t count() const { return _blocks.size(); }
    std::ptrdiff_t stride() const { return _stride; }
    // For blocks of constant length that are not at a constant distance.
    std::span<std::byte* const> addresses() const { return _addresses; }
    std::size_t length() const { return _blocks.front().length; }

    using pack_function   = void (*)(const pack_loops&, std::byte*);
    using unpack_function = void (*)(const pack_loops&, const std::byte*);

private:
    std::span<const memory_block> _blocks;
    std::ptrdiff_t _stride = 0;
    std::vector<std::byte*> _addresses;
    pack_function _pack;
    unpack_function _unpack;
};

} // namespace ucxl::perf

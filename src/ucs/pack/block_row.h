// One row of equal blocks at its address: a plan of the most frequent form together with a base address. It moves the
// same bytes as the plan, and finds them by fewer steps: staging calls it for each fragment of some KB.
//
// Example: const block_row row = plan->row_at(bases); if (row.can_gather(length)) { row.gather(offset, length, to); }
#pragma once

#include "copy_block.h"
#include "kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ucxl
{

class block_row
{
public:
    block_row() = default; // of a plan of another form

    // Otherwise the plan has to do it.
    bool can_gather(std::uint64_t length) const { return length < _gather_limit; }
    bool can_scatter(std::uint64_t length) const { return length < _scatter_limit; }

    // As the functions of pack_plan.
    void gather(std::uint64_t offset, std::uint64_t length, void* to) const
    {
        auto* packed = static_cast<std::byte*>(to);
        place at     = place_of(offset);
        if (at.skip > 0 || length < _block) [[unlikely]] {
            const std::uint64_t head = std::min(length, _block - at.skip);
            copy(packed, at.block + at.skip, head);
            packed += head;
            length -= head;
            at.block += _stride;
        }
        if (const std::uint64_t whole = num_blocks(length); whole > 0) {
            _gather(packed, at.block, {.length = _block, .count = whole, .stride = _stride});
            packed += whole * _block;
            length -= whole * _block;
            at.block += static_cast<std::int64_t>(whole) * _stride;
        }
        if (length > 0) [[unlikely]] {
            copy(packed, at.block, length);
        }
    }

    void scatter(std::uint64_t offset, std::uint64_t length, const void* from) const
    {
        const auto* packed = static_cast<const std::byte*>(from);
        place at           = place_of(offset);
        if (at.skip > 0 || length < _block) [[unlikely]] {
            const std::uint64_t head = std::min(length, _block - at.skip);
            copy(at.block + at.skip, packed, head);
            packed += head;
            length -= head;
            at.block += _stride;
        }
        if (const std::uint64_t whole = num_blocks(length); whole > 0) {
            _scatter(at.block, packed, {.length = _block, .count = whole, .stride = _stride});
            packed += whole * _block;
            length -= whole * _block;
            at.block += static_cast<std::int64_t>(whole) * _stride;
        }
        if (length > 0) [[unlikely]] {
            copy(at.block, packed, length);
        }
    }

private:
    friend class pack_plan;

    struct place {
        std::byte* block;
        std::uint64_t skip; // bytes of it
    };

    static constexpr unsigned no_shift = 64;

    std::uint64_t num_blocks(std::uint64_t length) const
    {
        return _shift != no_shift ? length >> _shift : length / _block;
    }

    place place_of(std::uint64_t offset) const
    {
        const std::uint64_t first = num_blocks(offset);
        return {_memory + static_cast<std::int64_t>(first) * _stride, offset - first * _block};
    }

    void copy(std::byte* to, const std::byte* from, std::uint64_t length) const
    {
        if (length > max_inline_length) {
            _copy(to, from, length);
        } else {
            copy_any<16>(to, from, length);
        }
    }

    std::byte* _memory                        = nullptr; // the first block
    std::uint64_t _block                      = 1;       // bytes
    std::int64_t _stride                      = 0;
    std::uint64_t _gather_limit               = 0; // bytes of a call; from there on the plan writes past the caches
    std::uint64_t _scatter_limit              = 0;
    unsigned _shift                           = no_shift; // of blocks whose length is a power of two
    decltype(block_kernels::gather) _gather   = nullptr;
    decltype(block_kernels::scatter) _scatter = nullptr;
    decltype(kernel_library::copy) _copy      = nullptr;
};

} // namespace ucxl

// Gives out pieces of a range of offsets that begins at 0. Pure: it knows of no memory.
//
// Pieces are whole granules of 8 bytes and begin at a multiple of 8; those of 64 bytes and more begin at a multiple of
// 64. Invariant: every offset is in exactly one block, and no two free blocks are neighbours.
//
// A piece comes from the smallest gap that holds it. Looking one up takes logarithmic time; so does taking one, as long
// as the gaps of its size are aligned.
//
// Example: granule_allocator rooms(4096); const auto offset = rooms.take(24); ... rooms.give_back(*offset);
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ucxl::mlx5
{

class granule_allocator
{
public:
    static constexpr std::uint64_t granule = 8;
    static constexpr std::uint64_t line    = 64;
    // The length of a piece for so many bytes; bytes <= 2^63.
    static constexpr std::uint64_t rounded(std::uint64_t bytes) { return (bytes + granule - 1) / granule * granule; }

    // `length` is a multiple of 8 and not 0. Throws std::bad_alloc.
    explicit granule_allocator(std::uint64_t length);

    // Returns the offset of a piece of rounded(bytes), or nothing if no gap is large enough. 0 < bytes <= 2^63. Throws
    // std::bad_alloc; then nothing has changed.
    std::optional<std::uint64_t> take(std::uint64_t bytes);
    // Whether take() would find a gap.
    bool has_room(std::uint64_t bytes) const { return place_for(rounded(bytes)).has_value(); }
    // Returns whether a piece begins at the offset, which now is free.
    bool give_back(std::uint64_t offset) noexcept;

    struct piece {
        std::uint64_t offset;
        std::uint64_t length;
    };
    // The piece that holds the offset and as many bytes from there on; nothing if there is a gap or an end between.
    std::optional<piece> find(std::uint64_t offset, std::uint64_t bytes) const;

    std::uint64_t length() const { return _length; }
    std::uint64_t free_bytes() const { return _free_bytes; }
    std::uint64_t num_pieces() const { return _num_pieces; }

private:
    using gaps = std::set<std::pair<std::uint64_t, std::uint64_t>>; // length, offset
    struct block {
        std::uint64_t length = 0;
        // Of a piece: what its gap will be once it is given back, so that this needs no memory. Empty: a gap.
        gaps::node_type parked;
    };
    using blocks = std::map<std::uint64_t, block>; // by offset

    struct place {
        std::uint64_t gap;   // its offset
        std::uint64_t start; // of the piece in it
    };

    std::optional<place> place_for(std::uint64_t length) const;
    void cut(blocks::iterator gap, std::uint64_t start, std::uint64_t length);

    std::uint64_t _length;
    std::uint64_t _free_bytes;
    std::uint64_t _num_pieces = 0;
    blocks _blocks;
    gaps _gaps;
};

} // namespace ucxl::mlx5

// Where the bytes of memory, or of a window, are on a line of a picture.
//
// A line consists of pieces, from one end of a block to the next one; a piece belongs to blocks or lies between them.
// All lines of a picture have one scale: a piece is as wide as it is long, and one of a block has a few pixels more,
// to be seen at all. What is longer than the scale's limit is shortened to it, and drawn with a mark. Blocks that
// overlap share pieces.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace ucxl::info
{

struct extent {
    std::ptrdiff_t begin, end;

    std::size_t length() const { return static_cast<std::size_t>(end - begin); }
};

struct piece {
    extent bytes;
    bool is_used; // by a block
};

// In ascending order, without holes.
std::vector<piece> pieces_between(std::span<const extent> blocks);

struct scale {
    double pixels_per_byte;
    std::size_t longest; // bytes of a piece that is not shortened

    bool shortens(const piece& part) const { return part.bytes.length() > longest; }
    double width_of(const piece& part) const;
};

// With which each of the lines fits into `width`. Shortens only where most blocks would be too narrow otherwise.
scale fit(std::span<const std::vector<piece>> lines, double width);

// Of the ends of all pieces of a line.
std::map<std::ptrdiff_t, double> places_on(const std::vector<piece>& line, const scale& by, double first_place);

} // namespace ucxl::info

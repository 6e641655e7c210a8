// Cuts a box of cells into one block per process, and knows the neighbours of each.
//
// Example: grid cut(4, {96, 96, 96}); cut.block_of(0).cells == {96, 48, 48} (x is cut last)
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace examples
{

using index3 = std::array<std::size_t, 3>; // x, y, z

struct box_block {
    index3 first; // cell of the whole box
    index3 cells;
};

class grid
{
public:
    // Throws std::runtime_error if some direction has fewer cells than processes.
    grid(unsigned processes, index3 cells);

    const index3& cells() const { return _cells; }
    const index3& processes() const { return _processes; } // per direction
    box_block block_of(unsigned rank) const;
    // The neighbour of rank in direction 0..2, below (side 0) or above (side 1); none at the end of the box.
    std::optional<unsigned> neighbour(unsigned rank, unsigned direction, unsigned side) const;

private:
    index3 place_of(unsigned rank) const;

    index3 _cells;
    index3 _processes{1, 1, 1};
};

} // namespace examples

// A block of the temperature field with a ghost layer of one cell around it, x fastest, and the 7-point heat stencil
// on it.
#pragma once

#include "grid.h"

#include <memory>

namespace examples
{

class field
{
public:
    explicit field(index3 inner_cells);

    const index3& cells() const { return _cells; } // without the ghost layer
    double* data() { return _values.get(); }
    // x, y, z from 0 to cells + 1: 0 and cells + 1 are ghosts.
    std::size_t index(std::size_t x, std::size_t y, std::size_t z) const
    {
        return x + (_cells[0] + 2) * (y + (_cells[1] + 2) * z);
    }
    std::size_t row_cells() const { return _cells[0] + 2; }
    std::size_t plane_cells() const { return (_cells[0] + 2) * (_cells[1] + 2); }

    // Sets the starting temperatures, which depend only on the place in the whole box. Ghosts outside the box stay 0: a
    // cold wall.
    void start(const box_block& part);
    // One explicit time step from `before` into this field.
    void step(const field& before);

private:
    index3 _cells;
    std::unique_ptr<double[]> _values;
};

} // namespace examples

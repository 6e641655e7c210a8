#include "field.h"

namespace examples
{

field::field(index3 inner_cells)
    : _cells(inner_cells), _values(new double[(inner_cells[0] + 2) * (inner_cells[1] + 2) * (inner_cells[2] + 2)]())
{
}

// Irregular, so that a misplaced cell is detected.
static double start_value(std::size_t x, std::size_t y, std::size_t z)
{
    const std::size_t mixed = (x * 73856093) ^ (y * 19349663) ^ (z * 83492791);
    return static_cast<double>(mixed % 100003) / 1000.0;
}

void field::start(const box_block& part)
{
    for (std::size_t z = 0; z < _cells[2]; ++z) {
        for (std::size_t y = 0; y < _cells[1]; ++y) {
            for (std::size_t x = 0; x < _cells[0]; ++x) {
                _values[index(x + 1, y + 1, z + 1)] =
                    start_value(part.first[0] + x, part.first[1] + y, part.first[2] + z);
            }
        }
    }
}

// Compiled without contraction to fused multiply-add (see Makefile.inc). The cut decides which cells are in a vector
// loop and which in its remainder, and both must round alike.
void field::step(const field& before)
{
    constexpr double conductivity = 0.125;
    const std::size_t row = row_cells(), plane = plane_cells();
    for (std::size_t z = 1; z <= _cells[2]; ++z) {
        for (std::size_t y = 1; y <= _cells[1]; ++y) {
            const double* const old      = &before._values[index(1, y, z)];
            double* __restrict const now = &_values[index(1, y, z)];
            for (std::size_t x = 0; x < _cells[0]; ++x) {
                const double* const c   = old + x;
                const double neighbours = ((c[-1] + c[1]) + (*(c - row) + c[row])) + (*(c - plane) + c[plane]);
                now[x]                  = *c + conductivity * (neighbours - 6.0 * *c);
            }
        }
    }
}

} // namespace examples

#include "grid.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace examples
{

// Area of all cuts, in cells.
static std::size_t cut_area(const index3& cells, const index3& processes)
{
    return (processes[0] - 1) * cells[1] * cells[2] + (processes[1] - 1) * cells[0] * cells[2] +
           (processes[2] - 1) * cells[0] * cells[1];
}

grid::grid(unsigned processes, index3 cells) : _cells(cells)
{
    constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
    std::size_t best           = none;
    // Of equal cuts the first one stays. It has the fewest cuts across x, whose faces cost most to exchange.
    for (std::size_t px = 1; px <= processes; ++px) {
        for (std::size_t py = 1; px * py <= processes; ++py) {
            const index3 candidate{px, py, processes / (px * py)};
            const bool fits =
                px * py * candidate[2] == processes && px <= cells[0] && py <= cells[1] && candidate[2] <= cells[2];
            if (fits && cut_area(cells, candidate) < best) {
                best       = cut_area(cells, candidate);
                _processes = candidate;
            }
        }
    }
    if (best == none) {
        throw std::runtime_error("the box has too few cells to give every process some");
    }
}

index3 grid::place_of(unsigned rank) const
{
    return {rank % _processes[0], rank / _processes[0] % _processes[1], rank / (_processes[0] * _processes[1])};
}

// The first (cells % processes) blocks are one cell longer.
box_block grid::block_of(unsigned rank) const
{
    const index3 place = place_of(rank);
    box_block result{};
    for (unsigned d = 0; d < 3; ++d) {
        const std::size_t share = _cells[d] / _processes[d], longer = _cells[d] % _processes[d];
        result.first[d] = place[d] * share + std::min(place[d], longer);
        result.cells[d] = share + (place[d] < longer ? 1 : 0);
    }
    return result;
}

std::optional<unsigned> grid::neighbour(unsigned rank, unsigned direction, unsigned side) const
{
    const index3 place     = place_of(rank);
    const std::size_t last = _processes[direction] - 1;
    if (place[direction] == (side == 0 ? 0 : last)) {
        return std::nullopt;
    }
    const unsigned step =
        direction == 0 ? 1 : static_cast<unsigned>(_processes[0] * (direction == 1 ? 1 : _processes[1]));
    return side == 0 ? rank - step : rank + step;
}

} // namespace examples

#include "face.h"

#include "examples/common/check.h"

#include <cstring>

namespace examples
{

face::face(const field& field, unsigned direction, unsigned side, face_role role)
{
    const index3& cells = field.cells();
    index3 corner{1, 1, 1};
    if (side == 1) {
        corner[direction] = role == face_role::sent ? cells[direction] : cells[direction] + 1;
    } else if (role == face_role::ghost) {
        corner[direction] = 0;
    }
    _first       = field.index(corner[0], corner[1], corner[2]);
    _inner       = direction == 0 ? 1 : cells[0];
    _middle      = direction == 1 ? 1 : cells[1];
    _outer       = direction == 2 ? 1 : cells[2];
    _middle_step = field.row_cells();
    _outer_step  = field.plane_cells();
}

ucx_layout::layout face::make_layout() const
{
    const auto bytes = [](std::size_t cell_count) { return static_cast<std::ptrdiff_t>(cell_count * sizeof(double)); };
    return must(ucx_layout::layout::create_strided(_inner * sizeof(double),
                                                   {{_outer, bytes(_outer_step)}, {_middle, bytes(_middle_step)}}),
                "layout of a face");
}

// An x face is single cells: its own loop saves a call per cell.
void face::pack(const double* field_values, double* to) const
{
    for (std::size_t i = 0; i < _outer; ++i) {
        const double* const plane = field_values + _first + i * _outer_step;
        if (_inner == 1) {
            for (std::size_t j = 0; j < _middle; ++j) {
                *to++ = plane[j * _middle_step];
            }
            continue;
        }
        for (std::size_t j = 0; j < _middle; ++j, to += _inner) {
            std::memcpy(to, plane + j * _middle_step, _inner * sizeof(double));
        }
    }
}

void face::unpack(const double* from, double* field_values) const
{
    for (std::size_t i = 0; i < _outer; ++i) {
        double* const plane = field_values + _first + i * _outer_step;
        if (_inner == 1) {
            for (std::size_t j = 0; j < _middle; ++j) {
                plane[j * _middle_step] = *from++;
            }
            continue;
        }
        for (std::size_t j = 0; j < _middle; ++j, from += _inner) {
            std::memcpy(plane + j * _middle_step, from, _inner * sizeof(double));
        }
    }
}

} // namespace examples

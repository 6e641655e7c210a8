// The cells of a field that one exchange sends or fills: a face next to the ghost layer, or in it.
#pragma once

#include "field.h"

#include <ucp_layout.hpp>

namespace examples
{

enum class face_role { sent, ghost };

class face
{
public:
    // direction 0..2, side 0 (below) or 1 (above), of fields with this many inner cells.
    face(const field& field, unsigned direction, unsigned side, face_role role);

    std::size_t cells() const { return _outer * _middle * _inner; }
    std::size_t first() const { return _first; } // index of the first cell in the field

    // Its base address is that of the first cell.
    ucx_layout::layout make_layout() const;
    void pack(const double* field_values, double* to) const;
    void unpack(const double* from, double* field_values) const;

private:
    // Rows of _inner cells, _middle of them _middle_step cells apart, _outer times _outer_step apart.
    std::size_t _first, _outer, _outer_step, _middle, _middle_step, _inner;
};

} // namespace examples

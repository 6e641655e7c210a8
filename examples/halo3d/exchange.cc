#include "exchange.h"

#include "examples/common/check.h"

namespace examples
{

std::vector<side_of_block> sides_of(unsigned rank, const grid& cut, const field& field)
{
    std::vector<side_of_block> sides;
    for (unsigned direction = 0; direction < 3; ++direction) {
        for (unsigned side = 0; side < 2; ++side) {
            if (const auto neighbour = cut.neighbour(rank, direction, side)) {
                sides.push_back({*neighbour, direction, side, face(field, direction, side, face_role::sent),
                                 face(field, direction, side, face_role::ghost)});
            }
        }
    }
    return sides;
}

static ucx_layout::window map_face(ucp_context_h context, const face& part, field& field)
{
    return must(ucx_layout::window::map(context, part.make_layout(), field.data() + part.first()), "window of a face");
}

face_windows::face_windows(ucp_context_h context, const std::vector<side_of_block>& sides, field_pair& fields)
{
    for (unsigned field_index = 0; field_index < 2; ++field_index) {
        for (const side_of_block& side : sides) {
            sent[field_index].push_back(map_face(context, side.sent, fields[field_index]));
            ghosts[field_index].push_back(map_face(context, side.ghost, fields[field_index]));
        }
    }
}

} // namespace examples

#include "exchange.h"

#include "examples/common/check.h"

namespace examples
{

std::vector<side_of_block> sides_of(unsigned rank, const grid& cut, const field& of)
{
    std::vector<side_of_block> sides;
    for (unsigned direction = 0; direction < 3; ++direction) {
        for (unsigned side = 0; side < 2; ++side) {
            if (const auto neighbour = cut.neighbour(rank, direction, side)) {
                sides.push_back({*neighbour, direction, side, face(of, direction, side, face_role::sent),
                                 face(of, direction, side, face_role::ghost)});
            }
        }
    }
    return sides;
}

static ucx_layout::window map_face(ucp_context_h context, const face& part, field& of)
{
    return must(ucx_layout::window::map(context, part.make_layout(), of.data() + part.first()), "window of a face");
}

face_windows::face_windows(ucp_context_h context, const std::vector<side_of_block>& sides, field_pair& fields)
{
    for (unsigned which = 0; which < 2; ++which) {
        for (const side_of_block& side : sides) {
            sent[which].push_back(map_face(context, side.sent, fields[which]));
            ghosts[which].push_back(map_face(context, side.ghost, fields[which]));
        }
    }
}

} // namespace examples

// The exchange of ghost layers between the blocks of a grid, in one of three ways.
//
// Windows are mapped once, for both fields of the time stepping. Each step then only sends and receives (or puts) them.
#pragma once

#include "examples/common/ucx_link.h"
#include "face.h"

#include <memory>
#include <string>
#include <vector>

namespace examples
{

using field_pair = std::array<field, 2>; // read one, write the other, in turn

class halo_exchange
{
public:
    virtual ~halo_exchange() = default;
    // Fills the ghosts of field 0 or 1 that lie inside the box.
    virtual void exchange(unsigned field_index) = 0;
};

// One neighbour, seen from this process.
struct side_of_block {
    unsigned neighbour;
    unsigned direction;
    unsigned side;
    face sent, ghost;

    // The tag names the face at which a message arrives, and the field.
    ucp_tag_t send_tag(unsigned field_index) const { return 16 * field_index + 2 * direction + (1 - side); }
    ucp_tag_t receive_tag(unsigned field_index) const { return 16 * field_index + 2 * direction + side; }
};

std::vector<side_of_block> sides_of(unsigned rank, const grid& cut, const field& field);

// Windows of every side, in the order of the sides, for each of the two fields.
struct face_windows {
    std::array<std::vector<ucx_layout::window>, 2> sent, ghosts;

    face_windows(ucp_context_h context, const std::vector<side_of_block>& sides, field_pair& fields);
};

// The receives and sends of one step; wait for all of them together.
class request_list
{
public:
    explicit request_list(ucx_link& link) : _link(link) {}
    void add(ucs_status_ptr_t request) { _requests.push_back(request); }
    void wait_all()
    {
        for (const ucs_status_ptr_t request : _requests) {
            _link.wait(request);
        }
        _requests.clear();
    }

private:
    ucx_link& _link;
    std::vector<ucs_status_ptr_t> _requests;
};

// The fields must outlive the result. All processes of the team call it at the same time.
using exchange_ptr = std::unique_ptr<halo_exchange>;
exchange_ptr make_tag_exchange(ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields);
exchange_ptr make_put_exchange(team& all, ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields);
exchange_ptr make_pack_exchange(ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields);

} // namespace examples

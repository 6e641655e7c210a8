// Faces as windows in tag messages: no byte is packed here.
#include "exchange.h"

namespace examples
{

namespace
{

class tag_exchange : public halo_exchange
{
public:
    tag_exchange(ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields)
        : _link(link), _sides(sides), _windows(link.context(), sides, fields)
    {
    }

    void exchange(unsigned field_index) override
    {
        request_list all(_link);
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            const ucx_layout::window& ghost = _windows.ghosts[field_index][i];
            all.add(_link.receive(ghost.address(), ghost.length(), _sides[i].receive_tag(field_index)));
        }
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            const ucx_layout::window& sent = _windows.sent[field_index][i];
            all.add(_link.send(_sides[i].neighbour, sent.address(), sent.length(), _sides[i].send_tag(field_index)));
        }
        all.wait_all();
    }

private:
    ucx_link& _link;
    std::vector<side_of_block> _sides;
    face_windows _windows;
};

} // namespace

exchange_ptr make_tag_exchange(ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields)
{
    return std::make_unique<tag_exchange>(link, sides, fields);
}

} // namespace examples

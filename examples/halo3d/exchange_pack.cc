// For comparison with windows: packing loops and ordinary buffers, with the same messages.
#include "exchange.h"

namespace examples
{

namespace
{

class pack_exchange : public halo_exchange
{
public:
    pack_exchange(ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields)
        : _link(link), _sides(sides), _fields(fields)
    {
        for (const side_of_block& side : _sides) {
            _sent.emplace_back(side.sent.cells());
            _ghosts.emplace_back(side.ghost.cells());
        }
    }

    void exchange(unsigned field_index) override
    {
        request_list all(_link);
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            all.add(_link.receive(_ghosts[i].data(), _ghosts[i].size() * sizeof(double),
                                  _sides[i].receive_tag(field_index)));
        }
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            _sides[i].sent.pack(_fields[field_index].data(), _sent[i].data());
            all.add(_link.send(_sides[i].neighbour, _sent[i].data(), _sent[i].size() * sizeof(double),
                               _sides[i].send_tag(field_index)));
        }
        all.wait_all();
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            _sides[i].ghost.unpack(_ghosts[i].data(), _fields[field_index].data());
        }
    }

private:
    ucx_link& _link;
    std::vector<side_of_block> _sides;
    field_pair& _fields;
    std::vector<std::vector<double>> _sent, _ghosts;
};

} // namespace

exchange_ptr make_pack_exchange(ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields)
{
    return std::make_unique<pack_exchange>(link, sides, fields);
}

} // namespace examples

// Faces as windows: one-sided puts into the ghost windows of the neighbours, each followed by a notice.
#include "exchange.h"

#include "examples/common/check.h"

#include <cstring>

namespace examples
{

namespace
{

// Address and remote key of the neighbour's ghost window.
struct remote_window {
    std::uint64_t address;
    std::unique_ptr<ucp_rkey, ucx_destroy<ucp_rkey_destroy>> key;
};

class put_exchange : public halo_exchange
{
public:
    put_exchange(team& all, ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields)
        : _link(link), _sides(sides), _windows(link.context(), sides, fields)
    {
        for (unsigned field_index = 0; field_index < 2; ++field_index) {
            for (std::size_t i = 0; i < _sides.size(); ++i) {
                _remote[field_index].push_back(swap_keys(_sides[i], _windows.ghosts[field_index][i]));
            }
        }
        all.barrier();
    }

    // A neighbour's ghosts may be written once it has computed with the old ones. Its notice of the step before says
    // so: there are two fields, so no process is more than one step ahead.
    void exchange(unsigned field_index) override
    {
        request_list all(_link);
        std::vector<char> notices(_sides.size());
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            all.add(_link.receive(&notices[i], 1, _sides[i].receive_tag(field_index)));
        }
        request_list puts(_link);
        for (std::size_t i = 0; i < _sides.size(); ++i) {
            const ucx_layout::window& sent = _windows.sent[field_index][i];
            const remote_window& to        = _remote[field_index][i];
            puts.add(_link.put(_sides[i].neighbour, sent.address(), sent.length(), to.address, to.key.get()));
        }
        for (const side_of_block& side : _sides) {
            puts.add(_link.flush(side.neighbour));
        }
        puts.wait_all();
        const char notice = 1;
        for (const side_of_block& side : _sides) {
            all.add(_link.send(side.neighbour, &notice, 1, side.send_tag(field_index)));
        }
        all.wait_all();
    }

private:
    // Sends the key of this window to the neighbour that writes here, and returns the neighbour's.
    remote_window swap_keys(const side_of_block& side, const ucx_layout::window& ghost)
    {
        constexpr ucp_tag_t key_tags = 1024;
        void* packed                 = nullptr;
        std::size_t length           = 0;
        check(ucp_rkey_pack(_link.context(), ghost.memh(), &packed, &length), "ucp_rkey_pack");
        std::string mine(sizeof(std::uint64_t) + length, '\0'), theirs(team::max_text_bytes, '\0');
        const auto address = reinterpret_cast<std::uint64_t>(ghost.address());
        std::memcpy(mine.data(), &address, sizeof(address));
        std::memcpy(mine.data() + sizeof(address), packed, length);
        ucp_rkey_buffer_release(packed);

        request_list both(_link);
        both.add(_link.receive(theirs.data(), theirs.size(), key_tags + side.receive_tag(0)));
        both.add(_link.send(side.neighbour, mine.data(), mine.size(), key_tags + side.send_tag(0)));
        both.wait_all();

        remote_window result;
        ucp_rkey_h key = nullptr;
        std::memcpy(&result.address, theirs.data(), sizeof(result.address));
        check(ucp_ep_rkey_unpack(_link.endpoint(side.neighbour), theirs.data() + sizeof(result.address), &key),
              "ucp_ep_rkey_unpack");
        result.key.reset(key);
        return result;
    }

    ucx_link& _link;
    std::vector<side_of_block> _sides;
    face_windows _windows;
    std::array<std::vector<remote_window>, 2> _remote;
};

} // namespace

exchange_ptr make_put_exchange(team& all, ucx_link& link, const std::vector<side_of_block>& sides, field_pair& fields)
{
    return std::make_unique<put_exchange>(all, link, sides, fields);
}

} // namespace examples

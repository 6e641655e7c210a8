#include "exchange.h"

#include "examples/common/check.h"

#include <cstring>

namespace examples
{

static constexpr ucp_tag_t data_tag = 1, done_tag = 2;

// The address and the packed remote key of a window, as bytes to send to the peer.
static std::string describe_window(ucp_context_h context, const ucx_layout::window& window)
{
    void* key          = nullptr;
    std::size_t length = 0;
    check(ucp_rkey_pack(context, window.memh(), &key, &length), "ucp_rkey_pack");
    const auto address = reinterpret_cast<std::uint64_t>(window.address());
    std::string text(sizeof(address) + length, '\0');
    std::memcpy(text.data(), &address, sizeof(address));
    std::memcpy(text.data() + sizeof(address), key, length);
    ucp_rkey_buffer_release(key);
    return text;
}

static ucx_layout::window map(ucp_context_h context, const pattern_side& side, memory_set& memory)
{
    return must(ucx_layout::window::map(context, side.make_layout(), memory.bases()), "window");
}

static std::uint64_t bytes_moved(const ucx_layout::window& window)
{
    ucp_layout_window_attr_t found{};
    found.field_mask = UCP_LAYOUT_WINDOW_ATTR_FIELD_STATISTICS;
    check(ucp_layout_window_query(window.get(), &found), "ucp_layout_window_query");
    return found.statistics.bytes_read + found.statistics.bytes_written;
}

exchange::exchange(team& both, ucx_link& link, const pattern& pattern)
    : _team(both), _link(link), _pattern(pattern), _peer(1 - both.rank()), _send_memory(pattern.send),
      _receive_memory(pattern.receive), _send_window(map(link.context(), pattern.send, _send_memory)),
      _receive_window(map(link.context(), pattern.receive, _receive_memory)),
      _packed_send(new std::byte[length_bytes()]), _packed_receive(new std::byte[length_bytes()])
{
    _blocks = must(pattern.send.make_layout().query(UCP_LAYOUT_ATTR_FIELD_BLOCKS), "ucp_layout_query").num_blocks;
    const std::string remote = both.gather(describe_window(link.context(), _receive_window))[_peer];
    std::memcpy(&_remote_address, remote.data(), sizeof(_remote_address));
    ucp_rkey_h key = nullptr;
    check(ucp_ep_rkey_unpack(link.endpoint(_peer), remote.data() + sizeof(_remote_address), &key),
          "ucp_ep_rkey_unpack");
    _remote_key.reset(key);
    _earlier_copies = bytes_moved(_send_window) + bytes_moved(_receive_window);
}

std::uint64_t exchange::copied_bytes() const
{
    return bytes_moved(_send_window) + bytes_moved(_receive_window) - _earlier_copies;
}

template <typename before_send, typename after_receive>
void exchange::ping_pong(unsigned iterations, buffers use, before_send&& prepare, after_receive&& deliver)
{
    const bool answers        = _team.rank() == 1;
    ucs_status_ptr_t expected = _link.receive(use.receive, length_bytes(), data_tag);
    for (unsigned i = 0; i < iterations; ++i) {
        if (answers) {
            _link.wait(expected);
            deliver();
        }
        const bool last = i + 1 == iterations;
        if (answers && !last) {
            expected = _link.receive(use.receive, length_bytes(), data_tag);
        }
        prepare();
        _link.wait(_link.send(_peer, use.send, length_bytes(), data_tag));
        if (!answers) {
            _link.wait(expected);
            deliver();
            if (!last) {
                expected = _link.receive(use.receive, length_bytes(), data_tag);
            }
        }
    }
}

void exchange::ping_pong_windows(unsigned iterations)
{
    ping_pong(iterations, {_send_window.address(), _receive_window.address()}, [] {}, [] {});
}

void exchange::ping_pong_packed(unsigned iterations)
{
    ping_pong(
        iterations, {_packed_send.get(), _packed_receive.get()},
        [this] { _pattern.pack(_send_memory.arrays(), _packed_send.get()); },
        [this] { _pattern.unpack(_packed_receive.get(), _receive_memory.arrays()); });
}

void exchange::put_windows(unsigned iterations)
{
    char done = 0;
    if (_team.rank() == 1) {
        _link.wait(_link.receive(&done, sizeof(done), done_tag)); // this also progresses arriving data
        return;
    }
    for (unsigned i = 0; i < iterations; ++i) {
        const ucs_status_ptr_t put =
            _link.put(_peer, _send_window.address(), length_bytes(), _remote_address, _remote_key.get());
        _link.wait(_link.flush(_peer));
        _link.wait(put);
    }
    _link.wait(_link.send(_peer, &done, sizeof(done), done_tag));
}

} // namespace examples
